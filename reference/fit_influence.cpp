#include "reference/fit_influence.hpp"

#include "reference/fit_double_double.hpp"
#include "reference/fit_solve.hpp"
#include "reference/fit_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace kda::reference {

std::vector<Influence> leave_one_out(std::span<const std::int64_t> seq_lens,
                                     std::span<const double> latencies, const Coefficients& raw,
                                     const FitQuality& quality) {
  const CentredSamples samples = centre_samples(seq_lens.subspan(1), latencies.subspan(1));
  std::vector<DoubleDouble> work;
  const auto solution = solve_centred<DoubleDouble>(samples.x, samples.y, work);
  const auto& inverse = solution.inverse;
  const auto n = static_cast<double>(samples.x.size());
  const double dof = n - 3;
  const double squares = dof * quality.residual_sd * quality.residual_sd;
  const double rounding = kRoundingShare * samples.max_latency;

  std::vector<Influence> out(samples.x.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    Influence& one = out[i];
    one.index = i + 1;
    one.length = seq_lens[i + 1];
    one.latency = latencies[i + 1];
    // The row of Q: (1, x, x^2) R^-1. Its square is the leverage.
    const Powers<DoubleDouble> row{DoubleDouble(1.0), DoubleDouble(samples.x[i]),
                                   two_product(samples.x[i], samples.x[i])};
    Powers<DoubleDouble> q{};
    double leverage = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k <= j; ++k) q[j] = q[j] + row[k] * inverse[j][k];
      leverage += static_cast<double>(q[j]) * static_cast<double>(q[j]);
    }
    one.leverage = std::clamp(leverage, 0.0, 1.0);
    one.without = raw;
    const double left = 1 - one.leverage;
    if (left < kRoundingShare) continue;  // nothing left to judge it by

    const double residual = quality.residuals[i];
    one.deleted_residual = residual / left;
    // What the others scatter. The difference cancels when this sample is all there is to it, hence
    // the floors; they keep the ratio finite and large.
    const double others = squares - residual * one.deleted_residual;
    const double variance = std::max({others / (dof - 1), 1e-15 * squares, rounding * rounding});
    if (variance > 0) one.studentised = residual / std::sqrt(variance * left);
    one.outlier_p = std::min(1.0, 2 * n * student_t_upper_tail(std::abs(one.studentised), dof - 1));
    Powers<DoubleDouble> change{};  // of p, q, r: R^-1 times the row of Q times the residual
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k <= j; ++k) change[k] = change[k] + inverse[j][k] * q[j];
    }
    const auto powers = to_length_powers(change, samples);
    one.without.a -= static_cast<double>(powers[2]) * one.deleted_residual;
    one.without.b -= static_cast<double>(powers[1]) * one.deleted_residual;
    one.without.c -= static_cast<double>(powers[0]) * one.deleted_residual;
  }
  return out;
}

}  // namespace kda::reference
