#include "reference/fit_statistics.hpp"

#include <cmath>
#include <numbers>

namespace kda::reference {
namespace {

/// Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), evaluated
/// front to back by Lentz's method. Converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  constexpr double kEnough = 1e-15;
  constexpr int kMaxTerms = 10000;  // about sqrt(max(a, b)) are needed
  const auto nonzero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / nonzero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int i = 1; i < kMaxTerms; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1) < kEnough) break;
  }
  return fraction;
}

/// The regularised incomplete beta function I_x(a, b).
double incomplete_beta(double x, double a, double b) {
  if (!(x > 0)) return std::isnan(x) ? x : 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(1 - x, b, a) / b;
}

}  // namespace

double student_t_upper_tail(double t, double dof) {
  const double both = incomplete_beta(dof / (dof + t * t), dof / 2, 0.5);
  return t < 0 ? 1 - both / 2 : both / 2;
}

double f_upper_tail(double f, double dof_top, double dof_bottom) {
  return incomplete_beta(dof_bottom / (dof_bottom + dof_top * f), dof_bottom / 2, dof_top / 2);
}

double normal_lower_tail(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

}  // namespace kda::reference
