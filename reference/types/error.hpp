#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kda {

/// Stable: numbers and names are printed, tested and stored in fixtures. Append, never renumber.
/// 1xx contract, 2xx fit and prediction, 3xx environment and usage, 4xx CUDA, 5xx data files.
enum class ErrorCode : std::uint16_t {
  kChunkSizeUnsupported = 100,
  kTrainingOnlyOption = 101,
  kNegEigvalWithFusedBeta = 102,
  kNegEigvalWithoutFusedBeta = 103,
  kHeadDimUnsupported = 104,
  kHeadCountNotDivisible = 105,
  kVarlenNeedsBatchOne = 106,
  kGateParamsMissing = 107,
  kLowerBoundMissing = 108,
  kRawGateDtype = 109,
  kEmptyInput = 110,
  kShapeMismatch = 111,
  kDtypeUnsupported = 112,
  kBetaShape = 113,
  kBetaDtype = 114,
  kALogInvalid = 115,
  kDtBiasInvalid = 116,
  kCuSeqlensShape = 117,
  kCuSeqlensSpan = 118,
  kCuSeqlensNotIncreasing = 119,
  kStateCountMismatch = 120,
  kInitialStateInvalid = 121,
  kLowerBoundInvalid = 122,
  kLowerBoundOutOfRange = 123,
  kScaleInvalid = 124,

  kFitLengthMismatch = 200,
  kFitNotEnoughPoints = 201,
  kFitFailed = 202,
  kFitInsufficientRank = 203,
  kFitANotPositive = 204,
  kFitBNegative = 205,
  kFitTargetLatencyNotPositive = 206,
  kFitInputInvalid = 207,

  kUsage = 300,
  kPathNotFound = 301,
  kNoFixtures = 302,
  kImplementationUnknown = 303,
  kPolicyUnknown = 304,
  kReportUnwritable = 305,
  kDeviceUnavailable = 306,
  kCaseLineInvalid = 307,
  kImplementationUnsupported = 308,
  kOutOfMemory = 309,
  kKnownFailuresInvalid = 310,
  kFormatsInvalid = 311,

  kWorkspaceTooSmall = 400,
  kNullPointer = 401,
  kMisalignedPointer = 402,
  kSlotIndexInvalid = 403,
  kSlotDuplicate = 404,
  kCudaRuntime = 405,
  kArchitectureUnsupported = 406,
  kExecutorFault = 407,
  kDeviceLost = 408,

  kFileUnreadable = 500,
  kFileNotHdf5 = 501,
  kFileTruncated = 502,
  kFormatUnknown = 503,
  kVersionUnsupported = 504,
  kOpUnknown = 505,
  kInputMissing = 506,
  kNameUnknown = 507,
  kDatasetUnwritten = 508,
  kDatasetTypeUnsupported = 509,
  kExpectedShape = 510,
  kChecksumMismatch = 511,
  kContentHashMismatch = 512,
  kFileUnwritable = 513,
  kAttributeInvalid = 514,
  kResultMalformed = 515,
  kBenchFileInvalid = 516,
  kReportTruncated = 517,
  kReportUnknown = 518,
  kShardMissing = 519,
  kShardRepeated = 520,
  kShardVersion = 521,
  kShardOptions = 522,
  kShardInputs = 523,
};

/// One row of the table of errors.
struct ErrorInfo {
  ErrorCode code;
  std::string_view name;     ///< stable, as fixtures and reports spell it: "beta_shape"
  std::string_view meaning;  ///< what it says about the input, one sentence
  std::string_view fix;      ///< what to do about it
};

/// Every error there is, in the order of the numbers.
[[nodiscard]] std::span<const ErrorInfo> all_errors() noexcept;

[[nodiscard]] const ErrorInfo& info(ErrorCode code) noexcept;
[[nodiscard]] std::string_view name(ErrorCode code) noexcept;

/// The code with this name, or nullptr.
[[nodiscard]] const ErrorInfo* find_error(std::string_view name) noexcept;

/// What every layer throws. `what()` is "name: message. Fix: fix".
class Error final : public std::runtime_error {
 public:
  /// message = field, wanted, got. The fix is the table's unless a better one is given.
  Error(ErrorCode code, std::string message);
  Error(ErrorCode code, std::string message, std::string fix);

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& fix() const noexcept { return fix_; }

 private:
  ErrorCode code_;
  std::string message_;
  std::string fix_;
};

}  // namespace kda
