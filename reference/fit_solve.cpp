#include "reference/fit_solve.hpp"

#include "reference/fit_double_double.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kda::reference {
namespace {

/// Sums, least and greatest are taken in this many lanes side by side: an operation need not wait
/// for the one before, and rounding grows slower.
constexpr std::size_t kLanes = 8;

template <class Real>
Real dot(std::span<const Real> a, std::span<const Real> b) {
  std::array<Real, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] = sums[lane] + a[i + lane] * b[i + lane];
    }
  }
  for (; i < a.size(); ++i) sums[0] = sums[0] + a[i] * b[i];
  for (std::size_t lane = 1; lane < kLanes; ++lane) sums[0] = sums[0] + sums[lane];
  return sums[0];
}

/// Reflects the columns right of `pivot` so that the pivot column vanishes below its diagonal, and
/// returns the diagonal entry of R. The reflector is v = column - diagonal * e_pivot.
template <class Real>
Real reflect(std::array<std::span<Real>, 4> columns, std::size_t pivot) {
  using std::sqrt;
  const std::span<Real> v = columns[pivot].subspan(pivot);
  const Real norm = sqrt(dot<Real>(v, v));
  const Real diagonal = static_cast<double>(v[0]) > 0 ? -norm : norm;  // no cancellation in v[0]
  const Real v_dot_v_half = norm * norm - diagonal * v[0];
  v[0] = v[0] - diagonal;
  for (std::size_t j = pivot + 1; j < columns.size(); ++j) {
    const std::span<Real> column = columns[j].subspan(pivot);
    const Real factor = dot<Real>(v, column) / v_dot_v_half;
    for (std::size_t i = 0; i < v.size(); ++i) column[i] = column[i] - factor * v[i];
  }
  return diagonal;
}

template <class Real>
Powers<Real> back_substitute(const std::array<Powers<Real>, 3>& triangle, Powers<Real> right) {
  const auto& [first, second, third] = triangle;
  right[2] = right[2] / third[2];
  right[1] = (right[1] - third[1] * right[2]) / second[1];
  right[0] = (right[0] - second[0] * right[1] - third[0] * right[2]) / first[0];
  return right;
}

struct Extremes {
  double low = 0;
  double high = 0;
};

Extremes extremes(std::span<const double> values) {
  std::array<double, kLanes> low{};
  low.fill(values[0]);
  std::array<double, kLanes> high = low;
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      low[lane] = std::min(low[lane], values[i + lane]);
      high[lane] = std::max(high[lane], values[i + lane]);
    }
  }
  for (; i < values.size(); ++i) {
    low[0] = std::min(low[0], values[i]);
    high[0] = std::max(high[0], values[i]);
  }
  return {*std::ranges::min_element(low), *std::ranges::max_element(high)};
}

int exponent_of(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return exponent;
}

}  // namespace

CentredSamples centre_samples(std::span<const std::int64_t> seq_lens,
                              std::span<const double> latencies) {
  CentredSamples out;
  out.x.assign(seq_lens.begin(), seq_lens.end());
  const auto [low, high] = extremes(out.x);
  out.centre_sum = static_cast<std::int64_t>(low) + static_cast<std::int64_t>(high);
  // frexp gives m 2^e with m in [0.5, 1), so 2^e is the power of two above range - 1.
  const double range = high - low;
  out.length_exponent = exponent_of(range - 1);
  const double scale = std::ldexp(1.0, -out.length_exponent);
  out.x_max = range * scale;
  const auto [least, greatest] = extremes(latencies);
  out.max_latency = std::max(-least, greatest);
  out.latency_exponent = exponent_of(out.max_latency);
  // In two steps, since 2^1074 does not fit a double.
  const int half = -out.latency_exponent / 2;
  const double y_scale = std::ldexp(1.0, half);
  const double y_scale_rest = std::ldexp(1.0, -out.latency_exponent - half);
  // 2l - (low + high) as 2(l - low) - range: each step is exact for lengths up to 2^53.
  for (double& x : out.x) x = (2 * (x - low) - range) * scale;
  out.y.assign(latencies.begin(), latencies.end());
  for (double& y : out.y) y = y * y_scale * y_scale_rest;
  return out;
}

template <class Real>
CentredSolution<Real> solve_centred(std::span<const double> x, std::span<const double> y,
                                    std::vector<Real>& work) {
  const std::size_t n = x.size();
  work.resize(4 * n);
  std::array<std::span<Real>, 4> columns;
  for (std::size_t j = 0; j < 4; ++j) columns[j] = std::span(work).subspan(j * n, n);
  std::ranges::fill(columns[0], Real(1.0));
  std::ranges::transform(x, columns[1].begin(), [](double value) { return Real(value); });
  std::ranges::transform(x, columns[2].begin(),
                         [](double value) { return Real(value) * Real(value); });
  std::ranges::transform(y, columns[3].begin(), [](double value) { return Real(value); });
  CentredSolution<Real> out{};
  for (std::size_t pivot = 0; pivot < 3; ++pivot) {
    out.triangle[pivot][pivot] = reflect(columns, pivot);
    for (std::size_t j = pivot + 1; j < 3; ++j) out.triangle[j][pivot] = columns[j][pivot];
  }
  const std::span<const Real> rest = columns[3].subspan(3);
  out.projection = {columns[3][0], columns[3][1], columns[3][2]};
  out.residual_sum_of_squares = static_cast<double>(dot(rest, rest));
  out.coefficients = back_substitute(out.triangle, out.projection);
  for (std::size_t j = 0; j < 3; ++j) {
    Powers<Real> unit{};
    unit[j] = Real(1.0);
    out.inverse[j] = back_substitute(out.triangle, unit);
  }
  return out;
}

// With x = 2 l s - m, s = 2^-length_exponent and m = centre_sum * s:
// p + q x + r x^2 = (p - m (q - m r)) + 2 s (q - 2 m r) l + 4 s^2 r l^2.
template <class Real>
Powers<Real> to_length_powers(const Powers<Real>& in_x, const CentredSamples& samples) {
  const auto& [p, q, r] = in_x;
  const Real two_s(std::ldexp(2.0, -samples.length_exponent));
  const Real m = Real(samples.centre_sum) * Real(std::ldexp(1.0, -samples.length_exponent));
  return {p - m * (q - m * r), two_s * (q - (m + m) * r), two_s * two_s * r};
}

// The other way round: l = (x + m) / (2 s), l^2 = (x^2 + 2 m x + m^2) / (2 s)^2.
template <class Real>
std::array<Powers<Real>, 3> to_length_design(const std::array<Powers<Real>, 3>& triangle,
                                             const CentredSamples& samples) {
  const auto& [one, x, x_squared] = triangle;
  const Real half_length(std::ldexp(0.5, samples.length_exponent));
  const Real m = Real(samples.centre_sum) * Real(std::ldexp(1.0, -samples.length_exponent));
  std::array<Powers<Real>, 3> out{one, {}, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    out[1][i] = half_length * (x[i] + m * one[i]);
    out[2][i] = half_length * half_length * (x_squared[i] + m * (x[i] + x[i] + m * one[i]));
  }
  return out;
}

double largest_singular_value(const std::array<Powers<double>, 3>& columns) {
  double largest = 0;
  for (const auto& column : columns) {
    for (const double entry : column) largest = std::max(largest, std::abs(entry));
  }
  if (!(largest > 0) || !std::isfinite(largest)) return largest;
  std::array<Powers<double>, 3> gram{};  // of the matrix divided by its largest entry
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) {
        gram[i][j] += (columns[i][k] / largest) * (columns[j][k] / largest);
      }
    }
  }
  // Eigenvalues of a symmetric 3 x 3 matrix (Smith, CACM 4, 1961): mean + 2 spread cos(angle).
  const double mean = (gram[0][0] + gram[1][1] + gram[2][2]) / 3;
  const double off = gram[0][1] * gram[0][1] + gram[0][2] * gram[0][2] + gram[1][2] * gram[1][2];
  const Powers<double> d{gram[0][0] - mean, gram[1][1] - mean, gram[2][2] - mean};
  const double spread = std::sqrt((d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 2 * off) / 6);
  if (spread == 0) return largest * std::sqrt(mean);
  const double determinant = d[0] * (d[1] * d[2] - gram[1][2] * gram[1][2]) -
                             gram[0][1] * (gram[0][1] * d[2] - gram[1][2] * gram[0][2]) +
                             gram[0][2] * (gram[0][1] * gram[1][2] - d[1] * gram[0][2]);
  const double cosine = std::clamp(determinant / (2 * spread * spread * spread), -1.0, 1.0);
  return largest * std::sqrt(mean + 2 * spread * std::cos(std::acos(cosine) / 3));
}

template CentredSolution<double> solve_centred(std::span<const double>, std::span<const double>,
                                               std::vector<double>&);
template CentredSolution<DoubleDouble> solve_centred(std::span<const double>,
                                                     std::span<const double>,
                                                     std::vector<DoubleDouble>&);
template Powers<double> to_length_powers(const Powers<double>&, const CentredSamples&);
template Powers<DoubleDouble> to_length_powers(const Powers<DoubleDouble>&, const CentredSamples&);
template std::array<Powers<double>, 3> to_length_design(const std::array<Powers<double>, 3>&,
                                                        const CentredSamples&);
template std::array<Powers<DoubleDouble>, 3> to_length_design(
    const std::array<Powers<DoubleDouble>, 3>&, const CentredSamples&);

}  // namespace kda::reference
