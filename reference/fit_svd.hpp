#pragma once

#include "reference/fit.hpp"

namespace kda::reference {

/// The same fit by another way: SVD (Eigen, long double) of a design in Legendre polynomials of the
/// length. It shares the checks and messages with fit_quadratic, but no arithmetic.
///
/// Where long double is the 80-bit format, predictions at the samples agree with fit_quadratic to
/// 1e-10 of the largest, unless the lengths sit so close together against their range (a cluster
/// and one far sample, ratio above about 1e8) that only double-double tells them apart.
[[nodiscard]] FitResult fit_quadratic_svd(std::span<const std::int64_t> seq_lens,
                                          std::span<const double> latencies);

}  // namespace kda::reference
