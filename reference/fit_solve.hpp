#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kda::reference {

/// Samples in a variable that makes the design well conditioned and loses nothing:
/// x = (2l - centre_sum) / 2^length_exponent, with centre_sum = min + max of the lengths and the
/// smallest power of two that keeps |x| <= 1. Lengths up to 2^53 give exact x. Latencies are
/// divided by 2^latency_exponent, so that the largest lies in [0.5, 1).
struct CentredSamples {
  std::vector<double> x;
  std::vector<double> y;
  std::int64_t centre_sum = 0;
  int length_exponent = 0;
  int latency_exponent = 0;
  double x_max = 0;        ///< half the range of lengths, in x
  double max_latency = 0;  ///< max |latency|, ms, not scaled
};

/// Wants lengths in 1 ... 2^53 that are not all equal, and finite latencies, equally many.
[[nodiscard]] CentredSamples centre_samples(std::span<const std::int64_t> seq_lens,
                                            std::span<const double> latencies);

/// A quadratic, or a column of an inverse, by powers of x: constant, linear, quadratic.
template <class Real>
using Powers = std::array<Real, 3>;

/// Least squares of y = p + q x + r x^2.
template <class Real>
struct CentredSolution {
  Powers<Real> coefficients;  ///< p, q, r
  Powers<Real> projection;    ///< of y on the orthonormal basis of 1, x, x^2 that Q gives
  double residual_sum_of_squares;
  std::array<Powers<Real>, 3> triangle;  ///< columns of R, upper triangular
  std::array<Powers<Real>, 3> inverse;   ///< columns of R^-1
};

/// Householder QR of the columns 1, x, x^2; Real is double or DoubleDouble. `work` is scratch that
/// a caller of many fits keeps. A design of rank below 3 gives infinities or NaN, no error.
template <class Real>
[[nodiscard]] CentredSolution<Real> solve_centred(std::span<const double> x,
                                                  std::span<const double> y,
                                                  std::vector<Real>& work);

/// Coefficients in x to coefficients in the length l, by powers: {c, b, a}. Latencies stay scaled.
template <class Real>
[[nodiscard]] Powers<Real> to_length_powers(const Powers<Real>& in_x,
                                            const CentredSamples& samples);

/// A column of R for x to the matching column for l: what QR of the columns 1, l, l^2 would give.
template <class Real>
[[nodiscard]] std::array<Powers<Real>, 3> to_length_design(
    const std::array<Powers<Real>, 3>& triangle, const CentredSamples& samples);

/// The largest singular value of a 3 x 3 matrix given by columns (closed form; the error is about
/// 1e-8 relative when two of them nearly coincide, else a few units of the last place).
[[nodiscard]] double largest_singular_value(const std::array<Powers<double>, 3>& columns);

}  // namespace kda::reference
