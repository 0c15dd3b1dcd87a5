#include "reference/types/error.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kda {
namespace {

using enum ErrorCode;

constexpr auto kErrors = std::to_array<ErrorInfo>({
    {kChunkSizeUnsupported, "chunk_size_unsupported",
     "The entry point has no kernel for this chunk size.",
     "pass chunk_size=64 (chunk_kda also takes 32)"},
    {kTrainingOnlyOption, "training_only_option",
     "An option of the training path was given to an inference path.",
     "leave cp_context out and disable_recompute at 0"},
    {kNegEigvalWithFusedBeta, "neg_eigval_with_fused_beta",
     "allow_neg_eigval asks for 2*sigmoid(beta), which the fused beta path does not do.",
     "pass 2*sigmoid(beta) ready-made with use_beta_sigmoid_in_kernel=False, or drop "
     "allow_neg_eigval"},
    {kNegEigvalWithoutFusedBeta, "neg_eigval_without_fused_beta",
     "allow_neg_eigval doubles the fused sigmoid, and there is none.",
     "set use_beta_sigmoid_in_kernel, or pass beta ready-made and drop allow_neg_eigval"},
    {kHeadDimUnsupported, "head_dim_unsupported",
     "q, k or v has a rank or a head dimension the entry point does not take.",
     "pass [B,T,H,K] and [B,T,HV,V] with head dimensions the contract lists"},
    {kHeadCountNotDivisible, "head_count_not_divisible",
     "The value heads do not divide among the query/key heads.", "make HV a multiple of H"},
    {kVarlenNeedsBatchOne, "varlen_needs_batch_one",
     "cu_seqlens describes a flattened batch, but B is not 1.",
     "flatten the batch to [1, B*T, ...], or drop cu_seqlens"},
    {kGateParamsMissing, "gate_params_missing",
     "The gate is to be computed in the kernel, and its parameters are missing.",
     "pass A_log (and dt_bias where the contract wants it), or pass log decays with "
     "use_gate_in_kernel=False"},
    {kLowerBoundMissing, "lower_bound_missing",
     "safe_gate promises bounded gates, and no bound is given.",
     "pass lower_bound, or drop safe_gate"},
    {kRawGateDtype, "raw_gate_dtype", "A raw gate must be stored as bf16.",
     "convert g to bf16, or pass log decays"},
    {kEmptyInput, "empty_input", "There is nothing to compute.",
     "skip the call when the batch is empty"},
    {kShapeMismatch, "shape_mismatch", "The shapes of q, k, v and g do not belong together.",
     "pass q, k [B,T,H,K], v [B,T,HV,V], g [B,T,HV,K] of one batch"},
    {kDtypeUnsupported, "dtype_unsupported",
     "q, k, v or g is stored in a type the contract does not take.",
     "convert to a dtype of the contract's table"},
    {kBetaShape, "beta_shape", "beta does not hold one value per token and value head.",
     "pass beta [B,T,HV]"},
    {kBetaDtype, "beta_dtype", "beta is stored in a type the contract does not take.",
     "convert beta to a dtype of the contract's table"},
    {kALogInvalid, "a_log_invalid", "A_log is not f32 with one value per value head.",
     "pass HV f32 values"},
    {kDtBiasInvalid, "dt_bias_invalid",
     "dt_bias is not f32 with one value per value head and channel.",
     "pass HV*K f32 values, row-major [HV,K]"},
    {kCuSeqlensShape, "cu_seqlens_shape", "cu_seqlens is not a list of sequence bounds.",
     "pass a 1-D int32 or int64 tensor of N+1 >= 2 entries"},
    {kCuSeqlensSpan, "cu_seqlens_span", "cu_seqlens does not span the tokens.",
     "start at 0 and end at T"},
    {kCuSeqlensNotIncreasing, "cu_seqlens_not_increasing",
     "A sequence runs backward, or is empty where that is not allowed.",
     "sort the bounds; leave empty sequences out for kda_prefill"},
    {kStateCountMismatch, "state_count_mismatch",
     "The number of initial states is not the number of sequences.",
     "pass one initial state per sequence"},
    {kInitialStateInvalid, "initial_state_invalid",
     "initial_state has another dtype or shape than the contract wants.",
     "pass f32 [N,HV,K,V], or [N,HV,V,K] with state_v_first"},
    {kLowerBoundInvalid, "lower_bound_invalid", "lower_bound is not a finite negative number.",
     "pass a finite negative bound such as -5, or none"},
    {kLowerBoundOutOfRange, "lower_bound_out_of_range", "safe_gate takes bounds in [-5, 0) only.",
     "pass a bound in [-5, 0), or drop safe_gate"},
    {kScaleInvalid, "scale_invalid", "scale is not finite.",
     "pass a finite scale, or none for K^-0.5"},

    {kFitLengthMismatch, "fit_length_mismatch", "There are not as many latencies as lengths.",
     "pass one latency per length"},
    {kFitNotEnoughPoints, "fit_not_enough_points",
     "Fewer than 8 samples are left after the first is dropped.", "profile at least 9 lengths"},
    {kFitFailed, "fit_failed", "A sample cannot be used, or the factorisation failed.",
     "remove or repeat the samples that are not finite, not positive or beyond 2^53"},
    {kFitInsufficientRank, "fit_insufficient_rank",
     "Fewer than 3 distinct lengths do not determine a quadratic.",
     "profile distinct, spread-out lengths"},
    {kFitANotPositive, "fit_a_not_positive", "The fitted curvature is not positive.",
     "check the warm-up data; a nearly linear model wants a fixed chunk size"},
    {kFitBNegative, "fit_b_negative",
     "The fitted linear coefficient is negative and was set to 0 (a warning).",
     "check the warm-up data for outliers"},
    {kFitTargetLatencyNotPositive, "fit_target_latency_not_positive",
     "The target latency is not positive.", "check the warm-up data and the base chunk size"},
    {kFitInputInvalid, "fit_input_invalid", "The samples cannot be read.",
     "two columns: length, latency in ms; '#' starts a comment"},

    {kUsage, "usage", "The command line is not understood.", "see kdacheck --help"},
    {kPathNotFound, "path_not_found", "The path does not exist or cannot be read.",
     "check the path and its permissions"},
    {kNoFixtures, "no_fixtures", "The folder holds no *.h5 file.",
     "name a folder with fixtures, or a file"},
    {kImplementationUnknown, "implementation_unknown", "There is no implementation of this name.",
     "see kdacheck list impls"},
    {kPolicyUnknown, "policy_unknown", "There is no comparison policy of this name.",
     "see kdacheck list policies"},
    {kReportUnwritable, "report_unwritable", "A report cannot be written.",
     "choose a writable place"},
    {kDeviceUnavailable, "device_unavailable", "The device asked for is not there.",
     "use --device cpu or auto"},
    {kCaseLineInvalid, "case_line_invalid", "The case line is not understood.",
     "see kdacheck check --help for the keys"},
    {kImplementationUnsupported, "implementation_unsupported",
     "The implementation does not serve this case.", "choose another implementation"},
    {kOutOfMemory, "out_of_memory", "The case needs more memory than there is.",
     "run a smaller case"},
    {kKnownFailuresInvalid, "known_failures_invalid", "The list of known failures cannot be used.",
     "see docs/check-your-kernel.md for its format"},
    {kFormatsInvalid, "formats_invalid", "The stated number formats are not understood.",
     "write them as in --formats operands=bf16,state=f32"},

    {kWorkspaceTooSmall, "workspace_too_small", "The workspace is smaller than the plan's size.",
     "allocate what the workspace query returns"},
    {kNullPointer, "null_pointer", "A required pointer is null.",
     "pass a buffer of the documented size"},
    {kMisalignedPointer, "misaligned_pointer", "A pointer is not aligned as the kernel needs.",
     "align buffers to 16 bytes"},
    {kSlotIndexInvalid, "slot_index_invalid", "A state slot index is below -1 or beyond the pool.",
     "pass indices in [-1, slots)"},
    {kSlotDuplicate, "slot_duplicate", "Two sequences update the same state slot in place.",
     "give every sequence a slot of its own"},
    {kCudaRuntime, "cuda_runtime", "A call of the CUDA runtime failed.",
     "see the message for call, file and line"},
    {kArchitectureUnsupported, "architecture_unsupported",
     "The device is older than the kernels need.",
     "use a device of compute capability 8.0 or newer"},
    {kExecutorFault, "executor_fault", "The CPU executor found a fault in a kernel.",
     "see the message for kernel, block, thread and line"},
    {kDeviceLost, "device_lost", "A kernel left the device unusable for this process.",
     "repeat the case alone under compute-sanitizer; later cases were not run"},

    {kFileUnreadable, "file_unreadable", "The file cannot be opened.",
     "check the path and its permissions"},
    {kFileNotHdf5, "file_not_hdf5", "The file is not an HDF5 file.",
     "regenerate or copy the fixture again"},
    {kFileTruncated, "file_truncated", "The file is shorter than it says.",
     "copy the fixture again"},
    {kFormatUnknown, "format_unknown", "The file is HDF5 but not a kdacheck fixture.",
     "set the root attribute format = \"kdacheck-fixture\""},
    {kVersionUnsupported, "version_unsupported", "The fixture was written by a later version.",
     "update kdacheck"},
    {kOpUnknown, "op_unknown", "The fixture's op is not known.",
     "use kda_prefill, chunk_kda, recurrent_kda, fit or predict"},
    {kInputMissing, "input_missing", "A required object is missing.",
     "add the object the message names"},
    {kNameUnknown, "name_unknown", "An input, param or expected value has an unknown name.",
     "remove it or correct its name"},
    {kDatasetUnwritten, "dataset_unwritten", "A dataset was created but never written.",
     "write the dataset"},
    {kDatasetTypeUnsupported, "dataset_type_unsupported",
     "A dataset is stored in a type that cannot be read.",
     "store floats as IEEE or HDF5 bf16 types, or 16-bit unsigned with attribute dtype = \"bf16\""},
    {kExpectedShape, "expected_shape", "An expected value has another shape than the inputs imply.",
     "correct the shape"},
    {kChecksumMismatch, "checksum_mismatch", "Stored data does not match its checksum.",
     "copy the fixture again"},
    {kContentHashMismatch, "content_hash_mismatch", "The content does not match content_sha256.",
     "copy the fixture again, or recompute the hash after a deliberate edit"},
    {kFileUnwritable, "file_unwritable", "The file cannot be written.",
     "choose a writable place with room"},
    {kAttributeInvalid, "attribute_invalid", "An attribute has a wrong type or value.",
     "correct the attribute"},
    {kResultMalformed, "result_malformed", "A result file does not hold what a result must hold.",
     "write datasets o, and final_state and h where asked for, as floats"},
    {kBenchFileInvalid, "bench_file_invalid",
     "The file is not one of benchmark results or of counters that can be compared.",
     "pass two files that the same version of kdacheck bench wrote"},
});

}  // namespace

std::span<const ErrorInfo> all_errors() noexcept { return kErrors; }

const ErrorInfo& info(ErrorCode code) noexcept {
  return *std::ranges::find(kErrors, code, &ErrorInfo::code);
}

std::string_view name(ErrorCode code) noexcept { return info(code).name; }

const ErrorInfo* find_error(std::string_view name) noexcept {
  const auto* row = std::ranges::find(kErrors, name, &ErrorInfo::name);
  return row == kErrors.end() ? nullptr : row;
}

Error::Error(ErrorCode code, std::string message)
    : Error(code, std::move(message), std::string(info(code).fix)) {}

Error::Error(ErrorCode code, std::string message, std::string fix)
    : std::runtime_error(std::string(name(code)) + ": " + message + ". Fix: " + fix),
      code_(code),
      message_(std::move(message)),
      fix_(std::move(fix)) {}

}  // namespace kda
