#include "reference/types/dtype.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kda {
namespace {

/// Value of a 16-bit pattern from its definition, sharing nothing with the conversions under test.
double by_definition(std::uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1 << mantissa_bits) - 1), -mantissa_bits);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

/// Every finite pattern, the midpoint to its upper neighbour, and both sides of the midpoint.
template <class Format, class Convert>
void check_all_patterns(int exponent_bits, Convert convert) {
  for (unsigned u = 0; u < 0x10000U; ++u) {
    const auto bits = static_cast<std::uint16_t>(u);
    const double value = by_definition(bits, exponent_bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(Format{bits})));
      EXPECT_EQ(convert(value).bits, 0x7FFF);
      continue;
    }
    ASSERT_EQ(static_cast<double>(to_float(Format{bits})), value) << std::hex << u;
    ASSERT_EQ(convert(value).bits, bits);
    if (std::isinf(value)) continue;
    const auto up = static_cast<std::uint16_t>(bits + 1);
    double above = by_definition(up, exponent_bits);
    if (std::isinf(above))
      above = value + (value - by_definition(static_cast<std::uint16_t>(bits - 1), exponent_bits));
    const double middle = value + (above - value) / 2;
    ASSERT_EQ(convert(middle).bits, bits % 2 == 0 ? bits : up) << std::hex << u;
    ASSERT_EQ(convert(std::nextafter(middle, value)).bits, bits) << std::hex << u;
    ASSERT_EQ(convert(std::nextafter(middle, above)).bits, up) << std::hex << u;
  }
}

TEST(Dtype, Bf16FromF64RoundsOnceOnEveryPattern) {
  check_all_patterns<Bf16>(8, [](double x) { return to_bf16(x); });
}

TEST(Dtype, F16FromF64RoundsOnceOnEveryPattern) {
  check_all_patterns<F16>(5, [](double x) { return to_f16(x); });
}

TEST(Dtype, FromF32AgreesWithFromF64) {
  std::uint32_t u = 12345;
  for (int i = 0; i < 1 << 20; ++i) {
    u = u * 1664525U + 1013904223U;
    const float x = detail::float_of(u);
    ASSERT_EQ(to_bf16(x).bits, to_bf16(static_cast<double>(x)).bits) << x;
    ASSERT_EQ(to_f16(x).bits, to_f16(static_cast<double>(x)).bits) << x;
  }
}

TEST(Dtype, TwoRoundingsWouldDiffer) {
  // Just above the midpoint of 1 and 1 + 2^-7, by less than half an f32 ulp.
  const double x = 1 + std::ldexp(1, -8) + std::ldexp(1, -40);
  EXPECT_EQ(to_bf16(x).bits, 0x3F81);
  EXPECT_EQ(to_bf16(static_cast<float>(x)).bits, 0x3F80);
}

TEST(Dtype, NamesAndSizes) {
  EXPECT_STREQ(name(Dtype::kBf16), "bf16");
  EXPECT_STREQ(name(Dtype::kI64), "i64");
  EXPECT_EQ(size_of(Dtype::kF16), 2);
  EXPECT_EQ(size_of(Dtype::kI32), 4);
  EXPECT_EQ(size_of(Dtype::kF64), 8);
  EXPECT_TRUE(is_float(Dtype::kBf16));
  EXPECT_FALSE(is_float(Dtype::kI32));
}

}  // namespace
}  // namespace kda
