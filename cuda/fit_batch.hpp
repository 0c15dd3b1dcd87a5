#pragma once

#include "cuda/fit_batch_plan.hpp"
#include "cuda/runtime.hpp"
#include "reference/types/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kda::cuda {

/// Many quadratic latency fits f(l) = a l^2 + b l + c at once: profile p has the samples
/// offsets[p] ... offsets[p+1] - 1, of which the first (cold start) is dropped. The arithmetic is
/// f64, and double-double where 53 bits do not determine a coefficient, in correctly rounded
/// operations of a fixed order: a fit has the same bits in every batch and schedule.
///
/// With `resamples`, each profile is not fitted itself but that many pairs-bootstrap resamples of
/// it: as many samples as are kept, drawn from them with replacement. The draws of resample r are
/// those of the CPU's bootstrap with this seed; they depend on (seed, r, position) alone.
struct FitBatch {
  std::span<const std::int64_t> seq_lens;  ///< tokens
  std::span<const double> latencies;       ///< ms, as many
  std::span<const std::int64_t> offsets;   ///< [profiles + 1], from 0 to the number of samples
  std::int64_t resamples = 0;
  std::uint64_t seed = 1;
};

/// A call of the fit kernel. seq_lens, latencies, outputs and workspace lie in device memory,
/// offsets in host memory, since they are checked. Fit number: profile, or
/// profile * resamples + resample.
struct FitBatchArgs {
  FitBatch batch;
  std::span<double> coefficients;  ///< [fits, 3] a, b, c, not corrected; NaN where there are none
  /// [fits] 0, or the ErrorCode that the fit ends with: kFitNotEnoughPoints (fewer than 8 kept),
  /// kFitFailed (a sample that is not finite, or of a length not in 1 ... 2^53; a coefficient
  /// beyond a double), kFitInsufficientRank (fewer than 3 distinct lengths), kFitANotPositive
  /// (a D^2 <= 1e-12 max|latency|, D half the range of lengths), with coefficients.
  std::span<std::int32_t> codes;
  std::span<std::byte> workspace;  ///< at least plan.workspace_bytes, 8-byte aligned
};

/// Checks all but the workspace, and plans. Touches no device memory. Throws kFitLengthMismatch,
/// kShapeMismatch (offsets, outputs, a profile of 2^32 samples to draw from), kNullPointer,
/// kMisalignedPointer.
[[nodiscard]] FitBatchPlan plan_fit_batch(const FitBatchArgs& args);

/// Plans, checks the workspace (kNullPointer, kMisalignedPointer, kWorkspaceTooSmall) and launches.
/// The returned plan owns host memory that the stream may still read: keep it until the launch, or
/// the graph it was captured in, is done with.
FitBatchPlan fit_batch(const FitBatchArgs& args, Runtime& runtime);

struct FitCoefficients {
  double a = 0;  ///< ms per token^2
  double b = 0;  ///< ms per token
  double c = 0;  ///< ms
};

/// How one fit ended. Coefficients, not corrected, are there without an error and beside
/// kFitANotPositive.
struct FitOutcome {
  std::optional<ErrorCode> error;
  std::optional<FitCoefficients> coefficients;
};

/// Runs a batch in host memory on a device: copies in, calls `fit_batch`, copies out.
[[nodiscard]] std::vector<FitOutcome> run_fit_batch(const FitBatch& batch, Device& device);

/// A batch of one; kFitLengthMismatch is an outcome too.
[[nodiscard]] FitOutcome run_fit(std::span<const std::int64_t> seq_lens,
                                 std::span<const double> latencies, Device& device);

}  // namespace kda::cuda
