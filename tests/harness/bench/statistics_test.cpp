#include "harness/bench/statistics.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

TEST(Median, OfOddAndEvenSamplesInAnyOrder) {
  EXPECT_EQ(median(std::vector{3.0, 1.0, 2.0}), 2);
  EXPECT_EQ(median(std::vector{4.0, 1.0, 3.0, 2.0}), 2.5);
  EXPECT_EQ(median(std::vector{7.0}), 7);
  EXPECT_EQ(median(std::vector{1.2e308, 1.4e308}), 1.3e308);
}

// Two-sided exact probabilities of published tables (for instance Mann and Whitney 1947).
TEST(MannWhitney, ExactForSmallSamples) {
  const std::vector low{1.0, 2.0, 3.0, 4.0, 5.0};
  const std::vector high{6.0, 7.0, 8.0, 9.0, 10.0};
  EXPECT_EQ(mann_whitney(low, high).u, 25);
  EXPECT_NEAR(mann_whitney(low, high).p, 2.0 / 252, 1e-12);
  EXPECT_NEAR(mann_whitney(high, low).p, 2.0 / 252, 1e-12);
  // U = 2 of 5 x 5: 1 + 1 + 2 orders at or below.
  const std::vector nearly{1.0, 2.0, 3.0, 5.5, 6.5};
  const std::vector above{4.9, 7.0, 8.0, 9.0, 10.0};
  EXPECT_EQ(mann_whitney(nearly, above).u, 23);
  EXPECT_NEAR(mann_whitney(nearly, above).p, 2 * 4.0 / 252, 1e-12);
  EXPECT_NEAR(mann_whitney(std::vector{1.0, 3.0}, std::vector{2.0, 4.0}).p, 2 * 2.0 / 6, 1e-12);
}

TEST(MannWhitney, LargeSamplesAgreeWithTheNormalApproximation) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 30; ++i) {
    x.push_back(i);
    y.push_back(i + 6.5);
  }
  const MannWhitney exact = mann_whitney(x, y);
  x.push_back(14.25);  // 31: approximate now, and little else has changed
  const MannWhitney approximate = mann_whitney(x, y);
  EXPECT_NEAR(std::log(exact.p), std::log(approximate.p), 0.3);
  EXPECT_LT(exact.p, 0.02);
}

TEST(MannWhitney, TiesCountHalfAndEqualSamplesAreNoEvidence) {
  const std::vector same(9, 1.0);
  EXPECT_EQ(mann_whitney(same, same).u, 81.0 / 2);
  EXPECT_EQ(mann_whitney(same, same).p, 1);
  EXPECT_EQ(mann_whitney(std::vector{1.0, 2.0}, std::vector{2.0, 3.0}).u, 3.5);
  EXPECT_LT(mann_whitney(same, std::vector(9, 1.1)).p, 1e-4) << "no ties between the two";
}

/// Under the null hypothesis p <= alpha happens with probability at most alpha.
TEST(MannWhitney, IsNotTooSureOfEqualSamples) {
  std::uint64_t state = 7;
  int small = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> x(9);
    std::vector<double> y(7);
    for (double& v : x) v = static_cast<double>(next_random(state) >> 11);
    for (double& v : y) v = static_cast<double>(next_random(state) >> 11);
    if (mann_whitney(x, y).p <= 0.05) ++small;
  }
  EXPECT_LE(small, 0.05 * kTrials + 3 * std::sqrt(0.05 * kTrials));
  EXPECT_GE(small, 0.02 * kTrials);
}

TEST(MedianBand, IsZeroWithoutSpreadAndScalesWithIt) {
  EXPECT_EQ(median_band(std::vector(9, 2.0)), 0);
  EXPECT_TRUE(std::isinf(median_band(std::vector{1.0})));
  const std::vector narrow{0.96, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04};
  std::vector<double> wide;
  for (const double x : narrow) wide.push_back(1 + 5 * (x - 1));
  EXPECT_NEAR(median_band(wide) / median_band(narrow), 5, 0.3);
  std::vector<double> disturbed = narrow;
  disturbed.back() = 3;
  EXPECT_NEAR(median_band(disturbed), median_band(narrow), 1e-12);
}

/// 95 of 100 pairs of medians of normal samples lie within it.
TEST(MedianBand, HoldsWhatItPromises) {
  std::uint64_t state = 3;
  const auto uniform = [&] {
    return (static_cast<double>(next_random(state) >> 11) + 0.5) * 0x1p-53;
  };
  const auto draw = [&] {
    std::vector<double> sample(25);
    for (double& x : sample)
      x = std::exp(0.02 * std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307 * uniform()));
    return sample;
  };
  int within = 0;
  constexpr int kTrials = 1000;
  for (int i = 0; i < kTrials; ++i) {
    const std::vector<double> a = draw();
    if (std::abs(std::log(median(draw()) / median(a))) <= median_band(a)) ++within;
  }
  EXPECT_GE(within, 0.90 * kTrials);
  EXPECT_LE(within, 0.99 * kTrials);
}

}  // namespace
}  // namespace kda::harness
