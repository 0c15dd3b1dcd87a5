#include "reference/fit.hpp"

#include "reference/fit_double_double.hpp"
#include "reference/fit_solve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kda::reference {
namespace {

/// What one precision makes of the samples.
struct Solved {
  Coefficients raw;
  double curvature = 0;                    ///< a D^2, ms
  std::array<Powers<double>, 3> spread{};  ///< columns of d(c, b, a) / d(Q^T y)
  std::array<Powers<double>, 3> design{};  ///< columns of R of the unscaled design
  std::vector<double> residuals;           ///< ms
  double residual_norm = 0;                ///< ms
  double r_squared = 0;
  bool well_determined = true;  ///< f64 is enough for these samples
};

/// Relative errors of the arithmetic arrive in a coefficient multiplied by the ratio of its
/// sensitivity to its size. Above this, f64 leaves it fewer than about 12 digits (2e-16 * 1e4).
constexpr double kMaxAmplification = 1e4;
/// Where the terms of f exceed the latencies by more than this, f in the rounded coefficients keeps
/// few digits; then they should at least be the right ones to the last bit.
constexpr double kMaxCancellation = 1e3;
/// A coefficient that is smaller than the noise of double-double (about n * 2^-104 of the terms it
/// is the difference of) is an exact zero.
constexpr double kDoubleDoubleNoise = 0x1p-88;

FitResult failure(ErrorCode code, std::string message) {
  FitResult out;
  out.error = code;
  out.message = std::move(message);
  return out;
}

FitResult fit_failed(const std::string& why) {
  return failure(ErrorCode::kFitFailed, "Failed to fit f(l) = al^2 + bl + c: " + why);
}

bool fewer_than_3_distinct(std::span<const std::int64_t> lengths) {
  const std::int64_t first = lengths.front();
  std::int64_t second = first;
  for (const std::int64_t length : lengths) {
    if (length == first || length == second) continue;
    if (second != first) return false;
    second = length;
  }
  return true;
}

double row_norm(const std::array<Powers<double>, 3>& columns, std::size_t row) {
  return std::hypot(columns[0][row], columns[1][row], columns[2][row]);
}

template <class Real>
std::array<Powers<double>, 3> as_double(const std::array<Powers<Real>, 3>& columns) {
  std::array<Powers<double>, 3> out{};
  for (std::size_t j = 0; j < 3; ++j) {
    for (std::size_t i = 0; i < 3; ++i) out[j][i] = static_cast<double>(columns[j][i]);
  }
  return out;
}

/// `powers` are c, b, a of scaled latencies, `sizes` the terms that each is the difference of.
/// Written so that NaN, from a triangle that f64 cannot tell from a singular one, is not enough.
bool f64_is_enough(const Powers<double>& powers, const Powers<double>& sizes,
                   const CentredSamples& samples) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (!(sizes[i] <= kMaxAmplification * std::abs(powers[i]))) return false;
  }
  const double longest = (static_cast<double>(samples.centre_sum) +
                          std::ldexp(samples.x_max, samples.length_exponent)) /
                         2;
  const double terms =
      std::abs(powers[0]) + (std::abs(powers[1]) + std::abs(powers[2]) * longest) * longest;
  return terms <= kMaxCancellation;
}

template <class Real>
Solved solve(const CentredSamples& samples, double zero_below) {
  std::vector<Real> work;
  const CentredSolution<Real> in_x = solve_centred<Real>(samples.x, samples.y, work);
  Solved out;
  const Powers<Real> in_l = to_length_powers(in_x.coefficients, samples);
  std::array<Powers<Real>, 3> spread = in_x.inverse;
  for (Powers<Real>& column : spread) column = to_length_powers(column, samples);
  out.spread = as_double(spread);
  out.design = as_double(to_length_design(in_x.triangle, samples));

  const auto unscale = [&](double y) { return std::ldexp(y, samples.latency_exponent); };
  // Of y: sums of squares left over, about the mean (the first basis vector is constant), and all.
  const auto square = [&](std::size_t i) {
    return static_cast<double>(in_x.projection[i]) * static_cast<double>(in_x.projection[i]);
  };
  const double left = in_x.residual_sum_of_squares;
  const double total = left + square(1) + square(2);
  const double latency_norm = std::sqrt(total + square(0));
  out.residual_norm = unscale(std::sqrt(left));
  out.r_squared = total > 0 ? 1 - left / total : std::numeric_limits<double>::quiet_NaN();

  Powers<double> powers{};
  Powers<double> sizes{};
  for (std::size_t i = 0; i < 3; ++i) {
    sizes[i] = row_norm(out.spread, i) * latency_norm;
    powers[i] = static_cast<double>(in_l[i]);
    if (std::abs(powers[i]) <= zero_below * sizes[i]) powers[i] = 0;
  }
  out.well_determined = f64_is_enough(powers, sizes, samples);
  out.raw = {unscale(powers[2]), unscale(powers[1]), unscale(powers[0])};
  out.curvature =
      powers[2] == 0
          ? 0.0
          : unscale(static_cast<double>(in_x.coefficients[2]) * samples.x_max * samples.x_max);
  const auto& [p, q, r] = in_x.coefficients;
  out.residuals.resize(samples.x.size());
  const double scale = unscale(1.0);
  for (std::size_t i = 0; i < samples.x.size(); ++i) {
    const Real x(samples.x[i]);
    out.residuals[i] = static_cast<double>(Real(samples.y[i]) - (p + x * (q + x * r))) * scale;
  }
  return out;
}

FitQuality assess(Solved&& solved) {
  FitQuality out;
  const auto n = static_cast<double>(solved.residuals.size());
  out.residual_sd = solved.residual_norm / std::sqrt(n - 3);
  const auto error_of = [&](std::size_t i) { return out.residual_sd * row_norm(solved.spread, i); };
  out.standard_errors = {error_of(2), error_of(1), error_of(0)};
  out.r_squared = solved.r_squared;
  // |R| |R^-1| as two norms: the smallest singular value of an R that is far from balanced would
  // drown in rounding, the largest one of its inverse does not.
  out.condition = largest_singular_value(solved.design) * largest_singular_value(solved.spread);
  out.residuals = std::move(solved.residuals);
  return out;
}

}  // namespace

std::optional<FitResult> check_samples(std::span<const std::int64_t> seq_lens,
                                       std::span<const double> latencies) {
  if (seq_lens.size() != latencies.size()) {
    return failure(ErrorCode::kFitLengthMismatch,
                   fmt::format("wanted one latency per length, got {} lengths and {} latencies",
                               seq_lens.size(), latencies.size()));
  }
  const std::size_t left = seq_lens.empty() ? 0 : seq_lens.size() - 1;
  if (left < kMinFitSamples) {
    return failure(ErrorCode::kFitNotEnoughPoints,
                   fmt::format("Not enough data points for quadratic fitting ({} < 8). Need at "
                               "least 8 samples with different sequence lengths.",
                               left));
  }
  for (std::size_t i = 1; i < seq_lens.size(); ++i) {
    if (!std::isfinite(latencies[i])) {
      return fit_failed(fmt::format("latency {} is not finite ({})", i, latencies[i]));
    }
    if (seq_lens[i] <= 0 || seq_lens[i] > kMaxFitLength) {
      return fit_failed(fmt::format("length {} is not in 1 ... 2^53 (got {})", i, seq_lens[i]));
    }
  }
  if (fewer_than_3_distinct(seq_lens.subspan(1))) {
    return failure(ErrorCode::kFitInsufficientRank,
                   "Failed to fit coefficients: insufficient rank");
  }
  return std::nullopt;
}

FitResult judge_coefficients(const Coefficients& raw, double curvature, double max_latency) {
  if (!std::isfinite(raw.a) || !std::isfinite(raw.b) || !std::isfinite(raw.c)) {
    return fit_failed("a coefficient is beyond the range of a double");
  }
  FitResult out;
  out.raw = raw;
  if (!(curvature > 1e-12 * max_latency)) {
    out.error = ErrorCode::kFitANotPositive;
    out.message = fmt::format(
        "Fitted quadratic coefficient a={:.2e} is not positive. Attention has O(n^2) complexity, "
        "so a must be positive. Check warmup data quality.",
        raw.a);
    return out;
  }
  out.corrected = raw;
  if (raw.b < 0) {
    out.corrected->b = 0;
    out.warnings.push_back(
        {ErrorCode::kFitBNegative,
         fmt::format("Fitted linear coefficient b={:.2e} is negative. Setting b=0.", raw.b)});
  }
  return out;
}

FitResult fit_quadratic(std::span<const std::int64_t> seq_lens, std::span<const double> latencies) {
  if (auto bad = check_samples(seq_lens, latencies)) return *std::move(bad);
  const CentredSamples samples = centre_samples(seq_lens.subspan(1), latencies.subspan(1));
  Solved solved = solve<double>(samples, 0);
  if (!solved.well_determined) solved = solve<DoubleDouble>(samples, kDoubleDoubleNoise);
  FitResult out = judge_coefficients(solved.raw, solved.curvature, samples.max_latency);
  if (out.raw) out.quality = assess(std::move(solved));
  return out;
}

TargetLatency target_latency(const Coefficients& f, std::int64_t base_chunk_size) {
  const auto base = static_cast<double>(base_chunk_size);
  TargetLatency out;
  out.value = f.a * base * base + f.b * base;
  if (base_chunk_size <= 0 || !(out.value > 0)) {
    out.error = ErrorCode::kFitTargetLatencyNotPositive;
    out.message = fmt::format(
        "Calculated target_latency={:.2f}ms is not positive. Check warmup data quality.",
        out.value);
  }
  return out;
}

}  // namespace kda::reference
