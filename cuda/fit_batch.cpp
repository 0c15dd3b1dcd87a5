#include "cuda/fit_batch.hpp"

#include <string>

namespace kda::cuda {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& field, const std::string& wanted,
                         const std::string& got) {
  throw Error(code, field + ": wanted " + wanted + ", got " + got);
}

void check_size(const char* field, std::size_t wanted, std::size_t got) {
  if (got == wanted) return;
  refuse(ErrorCode::kShapeMismatch, field, std::to_string(wanted) + " elements",
         std::to_string(got));
}

template <class T>
void check_pointer(const char* field, std::span<T> data, std::size_t alignment) {
  if (data.empty()) return;
  if (data.data() == nullptr) refuse(ErrorCode::kNullPointer, field, "a buffer", "null");
  if (reinterpret_cast<std::uintptr_t>(data.data()) % alignment != 0) {
    refuse(ErrorCode::kMisalignedPointer, field,
           "a multiple of " + std::to_string(alignment) + " bytes", "another address");
  }
}

/// A draw has 32 bits.
constexpr std::int64_t kMaxResampled = std::int64_t{1} << 32;

void check_offsets(const FitBatch& batch) {
  const auto samples = static_cast<std::int64_t>(batch.seq_lens.size());
  const auto offsets = batch.offsets;
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != samples) {
    refuse(ErrorCode::kShapeMismatch, "offsets", "0 to " + std::to_string(samples),
           offsets.empty()
               ? "none"
               : std::to_string(offsets.front()) + " to " + std::to_string(offsets.back()));
  }
  for (std::size_t p = 0; p + 1 < offsets.size(); ++p) {
    const std::string field = "offsets[" + std::to_string(p + 1) + "]";
    // Before any difference is taken, which could overflow otherwise.
    if (offsets[p + 1] < offsets[p] || offsets[p + 1] > samples) {
      refuse(ErrorCode::kShapeMismatch, field,
             std::to_string(offsets[p]) + " to " + std::to_string(samples),
             std::to_string(offsets[p + 1]));
    }
    if (batch.resamples > 0 && offsets[p + 1] - offsets[p] > kMaxResampled) {
      refuse(ErrorCode::kShapeMismatch, field, "at most 2^32 samples to draw from",
             std::to_string(offsets[p + 1] - offsets[p]));
    }
  }
}

}  // namespace

FitBatchPlan plan_fit_batch(const FitBatchArgs& args) {
  const FitBatch& batch = args.batch;
  if (batch.seq_lens.size() != batch.latencies.size()) {
    refuse(ErrorCode::kFitLengthMismatch, "latencies", std::to_string(batch.seq_lens.size()),
           std::to_string(batch.latencies.size()));
  }
  check_offsets(batch);
  FitBatchPlan plan =
      plan_fit_batch(static_cast<std::int64_t>(batch.offsets.size()) - 1, batch.resamples);
  const auto fits = static_cast<std::size_t>(plan.fits);
  check_size("coefficients", 3 * fits, args.coefficients.size());
  check_size("codes", fits, args.codes.size());
  check_pointer("seq_lens", batch.seq_lens, sizeof(std::int64_t));
  check_pointer("latencies", batch.latencies, sizeof(double));
  check_pointer("coefficients", args.coefficients, sizeof(double));
  check_pointer("codes", args.codes, sizeof(std::int32_t));
  plan.offsets.assign(batch.offsets.begin(), batch.offsets.end());
  plan.params.seq_lens = {batch.seq_lens.data()};
  plan.params.latencies = {batch.latencies.data()};
  plan.params.coefficients = {args.coefficients.data()};
  plan.params.codes = {args.codes.data()};
  plan.params.seed = batch.seed;
  return plan;
}

FitBatchPlan fit_batch(const FitBatchArgs& args, Runtime& runtime) {
  FitBatchPlan plan = plan_fit_batch(args);
  if (plan.fits == 0) return plan;
  if (args.workspace.size() < plan.workspace_bytes) {
    refuse(ErrorCode::kWorkspaceTooSmall, "workspace",
           std::to_string(plan.workspace_bytes) + " bytes", std::to_string(args.workspace.size()));
  }
  check_pointer("workspace", args.workspace, sizeof(std::int64_t));
  runtime.copy_to_device(args.workspace.data(), plan.offsets.data(), plan.workspace_bytes);
  plan.params.offsets = device::Global<std::byte>{args.workspace.data()}.as<std::int64_t>();
  runtime.launch(fit_kernel_forms(), plan.shape, &plan.params);
  return plan;
}

}  // namespace kda::cuda
