#pragma once

#include "reference/types/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kda::reference {

/// f(l) = a l^2 + b l + c, the latency in ms of a prefill of l tokens.
struct Coefficients {
  double a = 0;  ///< ms per token^2
  double b = 0;  ///< ms per token
  double c = 0;  ///< ms

  [[nodiscard]] constexpr double operator()(double length) const {
    return (a * length + b) * length + c;
  }
};

/// Fewest samples that a fit accepts after the first is dropped.
inline constexpr std::size_t kMinFitSamples = 8;
/// Above this a length is no longer a double exactly.
inline constexpr std::int64_t kMaxFitLength = std::int64_t{1} << 53;

/// Something about the answer that its user should know; it does not change the answer.
struct FitWarning {
  ErrorCode code = ErrorCode::kFitBNegative;
  std::string message;
};

/// How well the raw quadratic describes the kept samples.
struct FitQuality {
  std::vector<double> residuals;  ///< latency - raw f, ms, one per kept sample
  double residual_sd = 0;         ///< sqrt(sum residual^2 / (n - 3)), ms
  double r_squared = 0;           ///< NaN when all latencies are equal
  Coefficients standard_errors;   ///< of the raw coefficients, in their units
  double condition = 0;           ///< 2-norm condition number of the unscaled design [l^2, l, 1]
};

/// Outcome of a fit. Without an error `corrected` is there; `raw` and `quality` are there whenever
/// the least-squares problem was solved, so also beside kFitANotPositive.
struct FitResult {
  std::optional<ErrorCode> error;
  std::string message;  ///< of the error
  std::optional<Coefficients> raw;
  std::optional<Coefficients> corrected;  ///< raw, with b = 0 where it came out negative
  std::vector<FitWarning> warnings;
  std::optional<FitQuality> quality;

  [[nodiscard]] bool ok() const noexcept { return !error.has_value(); }
};

/// Least squares of f over all samples but the first, which pays for the cold start.
///
/// Lengths in tokens, latencies in ms. Householder QR in f64 of the design in a centred, scaled
/// length; where 53 bits would leave a coefficient with fewer than about 12 digits, or where the
/// terms of f nearly cancel (coefficients close to 0, narrow ranges far from 0), the same QR runs
/// once more in double-double. Then a coefficient above about 2^-64 of the terms that it is the
/// difference of has about 12 digits as well; a smaller one has fewer, and below 2^-88, where it is
/// rounding alone, it is given as 0.
///
/// Errors, first match: kFitLengthMismatch, kFitNotEnoughPoints, kFitFailed (a kept sample
/// unusable, or a coefficient beyond the range of a double), kFitInsufficientRank (fewer than 3
/// distinct kept lengths), kFitANotPositive (a D^2 <= 1e-12 max|latency|, D half the range of
/// lengths). Warning: kFitBNegative. Throws only std::bad_alloc.
[[nodiscard]] FitResult fit_quadratic(std::span<const std::int64_t> seq_lens,
                                      std::span<const double> latencies);

/// The checks that precede any solving, for other solvers of the same problem: the error of the
/// samples, or nothing when at least 3 distinct lengths are kept.
[[nodiscard]] std::optional<FitResult> check_samples(std::span<const std::int64_t> seq_lens,
                                                     std::span<const double> latencies);

/// The verdict on solved coefficients: range, curvature, sign of b. `curvature` is a D^2 and
/// `max_latency` max|latency|, both in ms.
[[nodiscard]] FitResult judge_coefficients(const Coefficients& raw, double curvature,
                                           double max_latency);

/// What a chunk may cost: target = f(base) - f(0) = a base^2 + b base, in ms.
struct TargetLatency {
  double value = 0;
  std::optional<ErrorCode> error;  ///< kFitTargetLatencyNotPositive
  std::string message;
};
[[nodiscard]] TargetLatency target_latency(const Coefficients& f, std::int64_t base_chunk_size);

}  // namespace kda::reference
