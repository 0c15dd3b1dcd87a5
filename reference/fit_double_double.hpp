#pragma once

#include <cmath>
#include <cstdint>

namespace kda::reference {

/// An unevaluated sum of two doubles, about 106 bits: what the fit falls back on when 53 bits do
/// not determine a coefficient. Dekker (1971) and Knuth (TAOCP 4.2.2) give the error-free sum and
/// product; the relative error of an operation is a few times 2^-104. Not for infinities.
struct DoubleDouble {
  double hi = 0;
  double lo = 0;

  constexpr DoubleDouble() = default;
  constexpr explicit DoubleDouble(double value) : hi(value) {}
  constexpr DoubleDouble(double high, double low) : hi(high), lo(low) {}
  /// Exact for |value| <= 2^62.
  explicit DoubleDouble(std::int64_t value)
      : hi(static_cast<double>(value)),
        lo(static_cast<double>(value - static_cast<std::int64_t>(hi))) {}

  [[nodiscard]] explicit operator double() const { return hi + lo; }
};

/// a + b exactly, for |a| >= |b| or a == 0.
inline DoubleDouble quick_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// a + b exactly.
inline DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double rounded_b = sum - a;
  return {sum, (a - (sum - rounded_b)) + (b - rounded_b)};
}

/// a * b exactly, unless the low part underflows.
inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

inline DoubleDouble operator-(DoubleDouble a) { return {-a.hi, -a.lo}; }

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = two_sum(a.hi, b.hi);
  const DoubleDouble low = two_sum(a.lo, b.lo);
  const DoubleDouble sum = quick_two_sum(high.hi, high.lo + low.hi);
  return quick_two_sum(sum.hi, sum.lo + low.lo);
}

inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + (-b); }

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = two_product(a.hi, b.hi);
  return quick_two_sum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.hi / b.hi;
  const DoubleDouble rest = a - b * DoubleDouble(first);
  const double second = rest.hi / b.hi;
  const double third = (rest - b * DoubleDouble(second)).hi / b.hi;
  return quick_two_sum(first, second) + DoubleDouble(third);
}

/// One Newton step on the root of the high part. Wants a >= 0.
inline DoubleDouble sqrt(DoubleDouble a) {
  if (a.hi == 0) return {};
  const double root = std::sqrt(a.hi);
  const DoubleDouble rest = a - two_product(root, root);
  return quick_two_sum(root, rest.hi / (2 * root));
}

}  // namespace kda::reference
