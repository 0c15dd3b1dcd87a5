#pragma once

#include "reference/types/problem.hpp"

#include <cmath>
#include <limits>

// Activations of KDA (Kimi Linear report, arXiv 2510.26692, section 4): what becomes of the stored
// g and beta before the recurrence sees them. Real is float, double or long double; nothing here
// throws. A step that is exact in real numbers stays finite: no form below makes inf * 0.

namespace kda::reference {

/// log(1 + e^x), accurate at both ends: e^x far below 0, x far above.
template <class Real>
[[nodiscard]] Real softplus(Real x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// 1 / (1 + e^-x), accurate at both ends.
template <class Real>
[[nodiscard]] Real sigmoid(Real x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const Real e = std::exp(x);
  return e / (1 + e);
}

/// Natural-log decay of the unbounded gate, -exp(A_log) * softplus(y), with y = g + dt_bias.
template <class Real>
[[nodiscard]] Real softplus_gate(Real y, Real A_log) {
  // Below this, softplus(y) = e^y to the last bit. One exponential of the sum, since the factors
  // alone may be inf and 0.
  if (y < std::log(std::numeric_limits<Real>::epsilon())) return -std::exp(A_log + y);
  return -std::exp(A_log) * softplus(y);
}

/// Natural-log decay of the bounded gate, lower_bound * sigmoid(exp(A_log) * y), y = g + dt_bias.
template <class Real>
[[nodiscard]] Real lower_bound_gate(Real y, Real A_log, Real lower_bound) {
  const Real slope = std::exp(A_log);
  // A slope of 0 or inf (A_log beyond the exponent range) must not meet a y of inf or 0.
  const Real x =
      std::isnormal(slope) ? slope * y : std::copysign(std::exp(A_log + std::log(std::abs(y))), y);
  return lower_bound * sigmoid(x);
}

/// Write strength from the stored beta.
template <class Real>
[[nodiscard]] Real write_strength(Real beta, BetaForm form) {
  switch (form) {
    case BetaForm::kReady: return beta;
    case BetaForm::kLogit: return sigmoid(beta);
    case BetaForm::kDoubledLogit: return 2 * sigmoid(beta);
  }
  return beta;
}

/// The factor of x <- x / sqrt(sum x^2 + 1e-6), from the sum of squares of one row.
template <class Real>
[[nodiscard]] Real l2_factor(Real sum_of_squares) {
  return 1 / std::sqrt(sum_of_squares + static_cast<Real>(1e-6L));
}

}  // namespace kda::reference
