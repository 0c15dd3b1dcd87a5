#pragma once

#include "cuda/device/primitives.hpp"

#include <cstdint>

// The two number types of the fit, by the same names, so that a solver is written once: double, and
// a sum of two doubles (about 106 bits) for samples that 53 bits do not determine. Products go
// through mul_rn and fma_rn, so that no compiler fuses them otherwise: CPU and GPU agree bit by
// bit.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

KDA_DEVICE double add(double a, double b) { return a + b; }
KDA_DEVICE double sub(double a, double b) { return a - b; }
KDA_DEVICE double mul(double a, double b) { return device::mul_rn(a, b); }
KDA_DEVICE double div(double a, double b) { return device::div_rn(a, b); }
KDA_DEVICE double root(double a) { return device::sqrt_rn(a); }
/// a b + c and c - a b.
KDA_DEVICE double mul_add(double a, double b, double c) { return device::fma_rn(a, b, c); }
KDA_DEVICE double mul_sub(double a, double b, double c) { return device::fma_rn(-a, b, c); }
KDA_DEVICE double to_double(double a) { return a; }
KDA_DEVICE double exchange(double a, int step) { return device::shuffle_xor(a, step); }
KDA_DEVICE double magnitude(double a) { return a < 0 ? -a : a; }

/// hi + lo, where lo is at most half a unit in the last place of hi. Error-free sum and product
/// after Knuth (TAOCP 4.2.2) and, with fma, Dekker (1971). Not for infinities.
struct DoubleDouble {
  double hi;
  double lo;
};

/// a + b exactly, for |a| >= |b| or a == 0.
KDA_DEVICE DoubleDouble exact_sum_ordered(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

KDA_DEVICE DoubleDouble exact_sum(double a, double b) {
  const double sum = a + b;
  const double rounded_b = sum - a;
  return {sum, (a - (sum - rounded_b)) + (b - rounded_b)};
}

KDA_DEVICE DoubleDouble exact_product(double a, double b) {
  const double product = device::mul_rn(a, b);
  return {product, device::fma_rn(a, b, -product)};
}

KDA_DEVICE DoubleDouble negative(DoubleDouble a) { return {-a.hi, -a.lo}; }

KDA_DEVICE DoubleDouble add(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = exact_sum(a.hi, b.hi);
  const DoubleDouble low = exact_sum(a.lo, b.lo);
  const DoubleDouble sum = exact_sum_ordered(high.hi, high.lo + low.hi);
  return exact_sum_ordered(sum.hi, sum.lo + low.lo);
}

KDA_DEVICE DoubleDouble sub(DoubleDouble a, DoubleDouble b) { return add(a, negative(b)); }

KDA_DEVICE DoubleDouble mul(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = exact_product(a.hi, b.hi);
  const double cross = device::fma_rn(a.hi, b.lo, device::mul_rn(a.lo, b.hi));
  return exact_sum_ordered(product.hi, product.lo + cross);
}

KDA_DEVICE DoubleDouble mul_add(DoubleDouble a, DoubleDouble b, DoubleDouble c) {
  return add(mul(a, b), c);
}

KDA_DEVICE DoubleDouble mul_sub(DoubleDouble a, DoubleDouble b, DoubleDouble c) {
  return sub(c, mul(a, b));
}

/// Long division: each quotient digit is a double.
KDA_DEVICE DoubleDouble div(DoubleDouble a, DoubleDouble b) {
  const double first = device::div_rn(a.hi, b.hi);
  DoubleDouble rest = mul_sub(b, {first, 0}, a);
  const double second = device::div_rn(rest.hi, b.hi);
  rest = mul_sub(b, {second, 0}, rest);
  const double third = device::div_rn(rest.hi, b.hi);
  return add(exact_sum_ordered(first, second), {third, 0});
}

/// One Newton step on the root of the high part. Wants a >= 0.
KDA_DEVICE DoubleDouble root(DoubleDouble a) {
  if (a.hi == 0) return {0, 0};
  const double guess = device::sqrt_rn(a.hi);
  const DoubleDouble rest = sub(a, exact_product(guess, guess));
  return exact_sum_ordered(guess, device::div_rn(rest.hi, guess + guess));
}

KDA_DEVICE double to_double(DoubleDouble a) { return a.hi + a.lo; }

KDA_DEVICE DoubleDouble exchange(DoubleDouble a, int step) {
  return {device::shuffle_xor(a.hi, step), device::shuffle_xor(a.lo, step)};
}

template <class Real>
KDA_DEVICE Real real_of(double value);
template <>
KDA_DEVICE double real_of<double>(double value) {
  return value;
}
template <>
KDA_DEVICE DoubleDouble real_of<DoubleDouble>(double value) {
  return {value, 0};
}

/// An integer of up to 62 bits; double rounds it, DoubleDouble does not.
template <class Real>
KDA_DEVICE Real real_of_integer(std::int64_t value);
template <>
KDA_DEVICE double real_of_integer<double>(std::int64_t value) {
  return static_cast<double>(value);
}
template <>
KDA_DEVICE DoubleDouble real_of_integer<DoubleDouble>(std::int64_t value) {
  const auto high = static_cast<double>(value);
  return {high, static_cast<double>(value - static_cast<std::int64_t>(high))};
}

/// 2^exponent, -1022 ... 1023.
KDA_DEVICE double power_of_two(int exponent) {
  return device::bits_double(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// value 2^exponent, rounded once (value of about 1, or any where the result is). In two steps:
/// 2^1074 is no double.
KDA_DEVICE double scale_by(double value, int exponent) {
  const int half = exponent / 2;
  return mul(mul(value, power_of_two(half)), power_of_two(exponent - half));
}

/// e of value = m 2^e with 0.5 <= m < 1; 0 for 0. Wants value >= 0, finite.
KDA_DEVICE int exponent_of(double value) {
  if (value == 0) return 0;
  const bool subnormal = value < 0x1p-1022;
  const std::uint64_t bits = device::double_bits(subnormal ? mul(value, 0x1p54) : value);
  return static_cast<int>(bits >> 52) - 1022 - (subnormal ? 54 : 0);
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
