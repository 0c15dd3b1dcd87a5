#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/fit_batch_params.hpp"
#include "cuda/kernels/fit_real.hpp"
#include "cuda/kernels/fit_samples.hpp"
#include "cuda/kernels/fit_triangle.hpp"
#include "reference/types/error.hpp"

#include <cstdint>

// Least squares of f(l) = a l^2 + b l + c, a warp each. In the variable
//   x = (2 l - (low + high)) 2^-e,  the least e with |x| <= 1,
// which is exact, the design is well conditioned; latencies are scaled by a power of two as well.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

/// Scaling of one fit, all of it exact.
struct FitScale {
  std::int64_t low;
  std::int64_t high;
  int length_exponent;
  int latency_exponent;

  KDA_DEVICE static FitScale of(const Survey& seen) {
    // m 2^e >= range with m < 1 for integers above range - 1.
    const auto below_range = static_cast<double>(seen.high - seen.low - 1);
    return {seen.low, seen.high, exponent_of(below_range), exponent_of(seen.max_latency)};
  }
  KDA_DEVICE double x(std::int64_t length) const {
    return mul(static_cast<double>(2 * (length - low) - (high - low)),
               power_of_two(-length_exponent));
  }
};

/// A factored design with the sum of y^2.
template <class Real>
struct Factored {
  Triangle<Real> triangle;
  double y_squared;
};

template <class Real>
KDA_DEVICE Factored<Real> factor(const FitSamples& samples, const FitScale& scale, int lane) {
  Factored<Real> out;
  out.triangle.clear();
  out.y_squared = 0;
  KDA_NO_UNROLL
  for (std::int64_t i = lane; i < samples.count; i += kLanes) {
    const std::int64_t at = samples.place(i);
    const double y = scale_by(device::load(samples.latencies, at), -scale.latency_exponent);
    const Real x = real_of<Real>(scale.x(device::load(samples.lengths, at)));
    Real row[4] = {real_of<Real>(1), x, mul(x, x), real_of<Real>(y)};
    out.triangle.template absorb<0>(row);
    out.y_squared = mul_add(y, y, out.y_squared);
  }
  out.triangle.merge_warp();
  KDA_UNROLL
  for (int step = 1; step < kLanes; step *= 2) out.y_squared += exchange(out.y_squared, step);
  return out;
}

/// p + q x + r x^2 by powers of l, in place. With x = 2 s l - m, s = 2^-e, m = (low + high) s:
/// (p - m (q - m r)) + 2 s (q - 2 m r) l + 4 s^2 r l^2.
template <class Real>
KDA_DEVICE void to_length_powers(Real (&z)[3], const FitScale& scale) {
  const Real m = mul(real_of_integer<Real>(scale.low + scale.high),
                     real_of<Real>(power_of_two(-scale.length_exponent)));
  const Real two_s = real_of<Real>(power_of_two(1 - scale.length_exponent));
  z[0] = mul_sub(m, mul_sub(m, z[2], z[1]), z[0]);
  z[1] = mul(two_s, mul_sub(add(m, m), z[2], z[1]));
  z[2] = mul(mul(two_s, two_s), z[2]);
}

/// What a fit comes to; of scaled latencies but for a, b, c.
struct FitSolution {
  double powers[3];  ///< c, b, a
  double curvature;  ///< a D^2, D half the range of lengths
  bool well_determined;
};

/// Above this ratio of a coefficient's sensitivity to its size, f64 leaves it fewer than about 12
/// digits (2e-16 * 1e4).
inline constexpr double kMaxAmplification = 1e4;
/// Where the terms of f exceed the latencies by more than this, f in rounded coefficients keeps few
/// digits; these should at least be right to the last bit.
inline constexpr double kMaxCancellation = 1e3;
/// A coefficient below the noise of double-double (about 2^-104 per sample of the terms it is the
/// difference of) is an exact zero.
inline constexpr double kNoise = 0x1p-88;

template <class Real>
KDA_DEVICE FitSolution solve(const Factored<Real>& factored, const FitScale& scale,
                             double zero_below) {
  const auto& r = factored.triangle.at;
  Real z[3] = {r[0][3], r[1][3], r[2][3]};
  back_substitute(factored.triangle, z);
  FitSolution out;
  const double x_max = scale.x(scale.high);
  out.curvature = mul(mul(to_double(z[2]), x_max), x_max);
  to_length_powers(z, scale);

  // Sensitivities: norms of the rows of d(c, b, a) / d(Q^T y).
  double squares[3] = {0, 0, 0};
  KDA_UNROLL
  for (int j = 0; j < 3; ++j) {
    Real unit[3] = {real_of<Real>(0), real_of<Real>(0), real_of<Real>(0)};
    unit[j] = real_of<Real>(1);
    back_substitute(factored.triangle, unit);
    to_length_powers(unit, scale);
    KDA_UNROLL
    for (int i = 0; i < 3; ++i) {
      const double entry = to_double(unit[i]);
      squares[i] = mul_add(entry, entry, squares[i]);
    }
  }
  const double norm = root(factored.y_squared);
  out.well_determined = true;
  KDA_UNROLL
  for (int i = 0; i < 3; ++i) {
    const double size = mul(root(squares[i]), norm);
    out.powers[i] = to_double(z[i]);
    if (magnitude(out.powers[i]) <= mul(zero_below, size)) out.powers[i] = 0;
    // NaN, of a triangle that f64 cannot tell from a singular one, fails the comparison.
    out.well_determined =
        out.well_determined && size <= mul(kMaxAmplification, magnitude(out.powers[i]));
  }
  if (out.powers[2] == 0) out.curvature = 0;
  const auto longest = static_cast<double>(scale.high);
  const double linear = mul_add(magnitude(out.powers[2]), longest, magnitude(out.powers[1]));
  const double terms = mul_add(linear, longest, magnitude(out.powers[0]));
  out.well_determined = out.well_determined && terms <= kMaxCancellation;
  return out;
}

KDA_DEVICE bool is_finite(double x) { return magnitude(x) <= 0x1.fffffffffffffp1023; }

KDA_DEVICE void store_fit(const FitParams& p, std::int64_t fit, const double (&abc)[3],
                          ErrorCode code) {
  KDA_UNROLL
  for (int i = 0; i < 3; ++i) device::store(p.coefficients, 3 * fit + i, abc[i]);
  device::store(p.codes, fit, static_cast<std::int32_t>(code));
}

KDA_DEVICE void store_error(const FitParams& p, std::int64_t fit, ErrorCode code) {
  const double nan = device::bits_double(0x7FF8000000000000U);
  const double none[3] = {nan, nan, nan};
  store_fit(p, fit, none, code);
}

/// Coefficients back in ms, and the verdict on them.
KDA_DEVICE void store_solution(const FitParams& p, std::int64_t fit, const FitSolution& solution,
                               const Survey& seen, int latency_exponent) {
  double abc[3];
  bool finite = true;
  KDA_UNROLL
  for (int i = 0; i < 3; ++i) {
    abc[i] = scale_by(solution.powers[2 - i], latency_exponent);
    finite = finite && is_finite(abc[i]);
  }
  if (!finite) {
    store_error(p, fit, ErrorCode::kFitFailed);
    return;
  }
  const double curvature = scale_by(solution.curvature, latency_exponent);
  const bool positive = curvature > mul(1e-12, seen.max_latency);
  store_fit(p, fit, abc, positive ? ErrorCode{} : ErrorCode::kFitANotPositive);
}

/// The error of samples that are not even solved, or ErrorCode{}.
KDA_DEVICE ErrorCode refusal(const Survey& seen) {
  if (!seen.usable) return ErrorCode::kFitFailed;
  return seen.third ? ErrorCode{} : ErrorCode::kFitInsufficientRank;
}

KDA_KERNEL(kFitThreads) fit_kernel(FitParams p) {
  const std::int64_t fit =
      static_cast<std::int64_t>(device::block_idx_x()) * (kFitThreads / kLanes) +
      device::thread_idx_x() / static_cast<unsigned>(kLanes);
  if (fit >= p.fits) return;
  const int lane = static_cast<int>(device::lane_id());
  const FitSamples samples = samples_of(p, fit);
  if (samples.count < 8) {
    if (lane == 0) store_error(p, fit, ErrorCode::kFitNotEnoughPoints);
    return;
  }
  const Survey seen = survey(samples, lane);
  if (const ErrorCode code = refusal(seen); code != ErrorCode{}) {
    if (lane == 0) store_error(p, fit, code);
    return;
  }
  const FitScale scale = FitScale::of(seen);
  FitSolution solution = solve(factor<double>(samples, scale, lane), scale, 0);
  // Lanes differ in the last bits; the first one decides for all.
  if (device::shuffle_idx(solution.well_determined ? 1 : 0, 0) == 0) {
    solution = solve(factor<DoubleDouble>(samples, scale, lane), scale, kNoise);
  }
  if (lane == 0) store_solution(p, fit, solution, seen, scale.latency_exponent);
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
