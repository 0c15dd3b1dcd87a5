#include "cuda/device/primitives.hpp"
#include "cuda/kernels/fit_real.hpp"

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

// The number types of the fit kernel. They ask nothing of the executor, so no launch is needed.

namespace kda::cuda::kernels {
namespace {

/// 1/3 and the like have endless digits: what is left after undoing an operation is its error.
constexpr double kEpsilon = 0x1p-100;

DoubleDouble third() { return div(DoubleDouble{1, 0}, DoubleDouble{3, 0}); }

double size(DoubleDouble x) { return std::abs(to_double(x)); }

TEST(FitPrimitives, OfF64AreRoundedOnce) {
  EXPECT_EQ(device::fma_rn(0x1.0000001p0, 0x1.0000001p0, -0x1.0000002p0), 0x1p-56);
  EXPECT_EQ(device::mul_rn(0x1.0000001p0, 0x1.0000001p0), 0x1.0000002p0);
  EXPECT_EQ(device::div_rn(1.0, 3.0), 1.0 / 3.0);
  EXPECT_EQ(device::sqrt_rn(2.0), std::sqrt(2.0));
  EXPECT_EQ(device::double_bits(-1.5), 0xBFF8000000000000U);
  EXPECT_EQ(device::bits_double(0x3FF0000000000001U), 1 + DBL_EPSILON);
}

TEST(FitDoubleDouble, SumsAndProductsOfDoublesAreExact) {
  const DoubleDouble sum = exact_sum(0x1p60, 1.25);
  EXPECT_EQ(sum.hi, 0x1p60);
  EXPECT_EQ(sum.lo, 1.25);
  const DoubleDouble product = exact_product(1 + 0x1p-40, 1 - 0x1p-40);
  EXPECT_EQ(product.hi, 1.0);
  EXPECT_EQ(product.lo, -0x1p-80);
}

TEST(FitDoubleDouble, OperationsKeepAHundredBits) {
  const DoubleDouble one{1, 0};
  EXPECT_LE(size(sub(mul(third(), {3, 0}), one)), kEpsilon);
  EXPECT_LE(size(sub(add(third(), add(third(), third())), one)), kEpsilon);
  EXPECT_LE(size(mul_sub(third(), {3, 0}, one)), kEpsilon);
  EXPECT_LE(size(mul_add(third(), {-3, 0}, one)), kEpsilon);
  const DoubleDouble r = root({2, 0});
  EXPECT_LE(size(sub(mul(r, r), {2, 0})), kEpsilon);
  EXPECT_NE(r.lo, 0);
  EXPECT_EQ(to_double(root({0, 0})), 0);
}

TEST(FitDoubleDouble, TakesIntegersExactly) {
  const std::int64_t odd = (std::int64_t{1} << 54) - 1;
  const auto x = real_of_integer<DoubleDouble>(odd);
  EXPECT_EQ(static_cast<std::int64_t>(x.hi) + static_cast<std::int64_t>(x.lo), odd);
  EXPECT_NE(x.lo, 0);
}

TEST(FitScaling, ExponentsAreThoseOfFrexp) {
  for (const double x :
       {1.0, 0.5, 3.0, 0x1p52, DBL_MAX, DBL_MIN, DBL_MIN / 2, 0x1.8p-1070, DBL_TRUE_MIN, 0.0}) {
    int want = 0;
    const double mantissa = std::frexp(x, &want);
    EXPECT_EQ(exponent_of(x), want) << x;
    EXPECT_EQ(scale_by(x, -want), mantissa) << x;
    EXPECT_EQ(scale_by(mantissa, want), x) << x;
  }
  EXPECT_EQ(scale_by(0.75, 1025), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace kda::cuda::kernels
