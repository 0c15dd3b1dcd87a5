#include "harness/compare/metrics.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(AbsoluteError, EqualValuesHaveNone) {
  EXPECT_EQ(absolute_error(1.5, 1.5), 0);
  EXPECT_EQ(absolute_error(0.0, -0.0), 0);
  EXPECT_EQ(absolute_error(kInf, kInf), 0);
  EXPECT_EQ(absolute_error(-kInf, -kInf), 0);
}

TEST(AbsoluteError, NoFiniteBoundAcceptsWhatIsNotFinite) {
  for (const auto& [expected, got] :
       {std::pair{1.0, kNaN}, {kNaN, kNaN}, {kNaN, 1.0}, {1.0, kInf}, {kInf, 1.0}, {kInf, -kInf}}) {
    EXPECT_FALSE(absolute_error(expected, got) <= 1e300) << expected << ' ' << got;
  }
}

TEST(UlpDistance, CountsValuesOfTheResultsType) {
  EXPECT_EQ(ulp_distance(Dtype::kBf16, 1.0, 1.0 + 0x1p-7), 1U);
  EXPECT_EQ(ulp_distance(Dtype::kF16, 1.0, 1.0 - 0x1p-11), 1U);
  EXPECT_EQ(ulp_distance(Dtype::kF32, 1.0, 1.0 + 0x1p-23), 1U);
  EXPECT_EQ(ulp_distance(Dtype::kF64, 1.0, std::nextafter(1.0, 2.0)), 1U);
  EXPECT_EQ(ulp_distance(Dtype::kBf16, 1.0, 2.0), 128U);  // an exponent bit
}

TEST(UlpDistance, RoundsTheExpectedValueFirst) {
  EXPECT_EQ(ulp_distance(Dtype::kBf16, 1.0 + 0x1p-9, 1.0), 0U);
}

TEST(UlpDistance, CrossesZero) {
  EXPECT_EQ(ulp_distance(Dtype::kBf16, 0.0, -0.0), 0U);
  EXPECT_EQ(ulp_distance(Dtype::kBf16, 0x1p-133, -0x1p-133), 2U);  // smallest subnormals
  EXPECT_EQ(ulp_distance(Dtype::kF64, -std::numeric_limits<double>::max(),
                         std::numeric_limits<double>::max()),
            2 * 0x7FEFFFFFFFFFFFFFU);
}

TEST(UlpDistance, IsFurthestForWhatIsNotFinite) {
  EXPECT_EQ(ulp_distance(Dtype::kF32, 1.0, kNaN), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(ulp_distance(Dtype::kF32, kInf, kInf), 0U);
}

TEST(Metrics, AddsUp) {
  Metrics metrics;
  metrics.add(Dtype::kF32, 3, 3);
  metrics.add(Dtype::kF32, -4, -5);
  EXPECT_EQ(metrics.compared, 2);
  EXPECT_EQ(metrics.max_abs, 1);
  EXPECT_EQ(metrics.max_rel, 0.25);
  EXPECT_EQ(metrics.max_expected, 4);
  EXPECT_DOUBLE_EQ(metrics.rms_ratio(), 0.2);
  EXPECT_DOUBLE_EQ(metrics.rms_expected(), std::sqrt(12.5));
}

TEST(Metrics, CountsWhatIsNotFiniteApart) {
  Metrics metrics;
  metrics.add(Dtype::kF32, 1, kNaN);
  metrics.add(Dtype::kF32, kInf, kInf);
  EXPECT_EQ(metrics.compared, 2);
  EXPECT_EQ(metrics.non_finite, 1);
  EXPECT_EQ(metrics.max_abs, 0);
  EXPECT_EQ(metrics.max_expected, 1);
}

TEST(Metrics, RatioAgainstZerosIsInfinite) {
  Metrics metrics;
  metrics.add(Dtype::kF32, 0, 0);
  EXPECT_EQ(metrics.rms_ratio(), 0);
  metrics.add(Dtype::kF32, 0, 1);
  EXPECT_EQ(metrics.rms_ratio(), kInf);
}

TEST(Metrics, SquaresThatLeaveF64AreNoAgreement) {
  for (const double size : {1e200, 1e-200}) {
    Metrics metrics;
    metrics.add(Dtype::kF64, size, 1.05 * size);
    EXPECT_EQ(metrics.rms_ratio(), kInf) << size;
  }
}

TEST(Metrics, MergedPartsEqualTheWhole) {
  Metrics whole;
  Metrics first;
  Metrics second;
  for (int i = 0; i < 10; ++i) {
    const double got = i + (i % 3) * 0.125;
    whole.add(Dtype::kF32, i, got);
    (i < 4 ? first : second).add(Dtype::kF32, i, got);
  }
  whole.bad = 3;
  first.bad = 1;
  second.bad = 2;
  first.merge(second);
  EXPECT_EQ(first.compared, whole.compared);
  EXPECT_EQ(first.max_abs, whole.max_abs);
  EXPECT_EQ(first.max_ulp, whole.max_ulp);
  EXPECT_EQ(first.rms_ratio(), whole.rms_ratio());
  EXPECT_EQ(first.bad_share(), whole.bad_share());
}

}  // namespace
}  // namespace kda::harness
