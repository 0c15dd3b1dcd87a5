#pragma once

#include "reference/fit.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kda::reference {

/// What one sample does to the fit, from the fit of all the others (computed by the deletion
/// formulas, not by fitting again: Belsley, Kuh, Welsch 1980).
struct Influence {
  std::size_t index = 0;  ///< in the samples as passed; 0 is the dropped one and never here
  std::int64_t length = 0;
  double latency = 0;   ///< ms
  double leverage = 0;  ///< 0 ... 1; 1 = the curve passes through it whatever the others say
  double deleted_residual = 0;  ///< latency - f of the others, ms
  double studentised = 0;       ///< deleted_residual in its standard errors, Student's t, n - 4 dof
  double outlier_p = 1;         ///< two-sided, times n (Bonferroni): that it is large by chance
  Coefficients without;         ///< raw coefficients of the others
};

/// One entry per kept sample, in order. Wants the quality of a fit of the same samples.
[[nodiscard]] std::vector<Influence> leave_one_out(std::span<const std::int64_t> seq_lens,
                                                   std::span<const double> latencies,
                                                   const Coefficients& raw,
                                                   const FitQuality& quality);

/// Residuals below this share of the largest latency are rounding, not measurement.
inline constexpr double kRoundingShare = 1e-12;

}  // namespace kda::reference
