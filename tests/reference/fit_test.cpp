#include "reference/fit.hpp"

#include "tests/reference/fit_samples.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using reference::fit_quadratic;
using reference::FitResult;
using reference::target_latency;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

FitResult fit(const Samples& samples) { return fit_quadratic(samples.lengths, samples.latencies); }

void expect_refused(const FitResult& result, ErrorCode code) {
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(name(*result.error), name(code));
  EXPECT_FALSE(result.ok());
  EXPECT_FALSE(result.raw.has_value());
  EXPECT_FALSE(result.corrected.has_value());
  EXPECT_FALSE(result.quality.has_value());
}

TEST(FitErrors, LengthMismatchComesBeforeAllElse) {
  const FitResult result =
      fit_quadratic(std::vector<std::int64_t>{1, 2}, std::vector<double>{kNan});
  expect_refused(result, ErrorCode::kFitLengthMismatch);
  EXPECT_EQ(result.message, "wanted one latency per length, got 2 lengths and 1 latencies");
}

TEST(FitErrors, NotEnoughPointsCountsWhatIsLeft) {
  for (const int samples : {0, 1, 2, 8}) {
    const auto n = static_cast<std::size_t>(samples);
    const FitResult result =
        fit_quadratic(std::vector<std::int64_t>(n, -1), std::vector<double>(n, kNan));
    expect_refused(result, ErrorCode::kFitNotEnoughPoints);
    EXPECT_EQ(result.message,
              "Not enough data points for quadratic fitting (" +
                  std::to_string(samples == 0 ? 0 : samples - 1) +
                  " < 8). Need at least 8 samples with different sequence lengths.");
  }
  EXPECT_TRUE(fit(sample(ladder(1, 100, 100, 8), {1e-4, 0.5, 3})).ok());
}

TEST(FitErrors, NonFiniteLatencyIsNamed) {
  for (const double bad : {kNan, kInf, -kInf}) {
    Samples samples = profile_6144();
    samples.latencies[77] = bad;
    const FitResult result = fit(samples);
    expect_refused(result, ErrorCode::kFitFailed);
    EXPECT_TRUE(result.message.starts_with(
        "Failed to fit f(l) = al^2 + bl + c: latency 77 is not finite ("))
        << result.message;
  }
}

TEST(FitErrors, LengthOutOfRangeIsNamed) {
  for (const std::int64_t bad :
       {std::int64_t{0}, std::int64_t{-5}, (std::int64_t{1} << 53) + 1,
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    Samples samples = profile_6144();
    samples.lengths[3] = bad;
    const FitResult result = fit(samples);
    expect_refused(result, ErrorCode::kFitFailed);
    EXPECT_EQ(result.message,
              "Failed to fit f(l) = al^2 + bl + c: length 3 is not in 1 ... 2^53 (got " +
                  std::to_string(bad) + ")");
  }
}

TEST(FitErrors, FirstSampleIsDroppedUnread) {
  Samples samples = profile_6144();
  const FitResult clean = fit(samples);
  samples.latencies[0] = kNan;
  samples.lengths[0] = std::numeric_limits<std::int64_t>::min();
  const FitResult odd = fit(samples);
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd.raw->a, clean.raw->a);
  EXPECT_EQ(odd.quality->residuals.size(), 127U);
}

TEST(FitErrors, CoefficientBeyondRange) {
  // A parabola so steep that its value at 0 is beyond the largest double.
  const double big = 1.7e308;
  const Samples samples{{1, 1, 2, 3, 4, 5, 6, 7, 8},
                        {1, big, big, -big, -big, -big, -big, big, big}};
  const FitResult result = fit(samples);
  expect_refused(result, ErrorCode::kFitFailed);
  EXPECT_EQ(result.message,
            "Failed to fit f(l) = al^2 + bl + c: a coefficient is beyond the range of a double");
}

// Upstream: lstsq always returns 3 coefficients and their count is what is tested, so it accepts
// both of these (one length gives a = 5.96e-6, two give 2.38e-6).
TEST(FitErrors, InsufficientRank) {
  Samples one{std::vector<std::int64_t>(9, 4096), std::vector<double>(9, 100.0)};
  one.lengths[0] = 1;  // dropped, so it does not count as a distinct length
  Samples two{{1, 1024, 1024, 1024, 1024, 4096, 4096, 4096, 4096},
              {1, 10, 10, 10, 10, 70, 70, 70, 70}};
  for (const Samples& samples : {one, two}) {
    const FitResult result = fit(samples);
    expect_refused(result, ErrorCode::kFitInsufficientRank);
    EXPECT_EQ(result.message, "Failed to fit coefficients: insufficient rank");
  }
  two.lengths[8] = 4097;  // a third length, however close, is solved
  EXPECT_TRUE(fit(two).raw.has_value());
}

TEST(FitErrors, ANotPositiveKeepsRawCoefficients) {
  const FitResult result = fit(sample(ladder(50, 100, 100, 19), {-1e-6, 0.5, 3}));
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(*result.error, ErrorCode::kFitANotPositive);
  EXPECT_EQ(result.message,
            "Fitted quadratic coefficient a=-1.00e-06 is not positive. Attention has O(n^2) "
            "complexity, so a must be positive. Check warmup data quality.");
  ASSERT_TRUE(result.raw.has_value());
  EXPECT_NEAR(result.raw->a, -1e-6, 1e-17);
  EXPECT_FALSE(result.corrected.has_value());
  EXPECT_TRUE(result.quality.has_value());
}

TEST(FitErrors, RoundingNoiseIsNoCurvature) {
  // Exactly linear data and all-equal latencies: whatever sign rounding gives a, it is not
  // positive.
  for (const double slope : {0.02, 0.0}) {
    for (const std::int64_t first : {60, 1000003, 123456789}) {
      const FitResult result = fit(sample(ladder(1, first, 60, 127), {0, slope, 15.1}));
      ASSERT_TRUE(result.error.has_value()) << first;
      EXPECT_EQ(*result.error, ErrorCode::kFitANotPositive);
    }
  }
}

TEST(FitErrors, CurvatureThreshold) {
  // Lengths 1 ... 9, so D = 4, about 1024 ms: a 16 against 1e-12 * 1024 from both sides.
  for (const double factor : {0.9, 1.1}) {
    const double a = factor * 1e-12 * 64;
    const FitResult result = fit(sample(ladder(1, 1, 1, 9), {a, -10 * a, 1024 + 25 * a}));
    ASSERT_TRUE(result.raw.has_value());
    EXPECT_NEAR(result.raw->a / a, 1, 1e-2);
    EXPECT_EQ(result.ok(), factor > 1);
  }
}

TEST(FitErrors, AllZeroLatencies) {
  const FitResult result = fit(sample(ladder(1, 100, 100, 9), {}));
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(*result.error, ErrorCode::kFitANotPositive);
  EXPECT_EQ(result.raw->a, 0);
  EXPECT_TRUE(std::isnan(result.quality->r_squared));
}

TEST(FitWarnings, NegativeBIsSetToZeroAndTheRestStays) {
  const FitResult result = fit(sample(ladder(1, 100, 100, 19), {1e-4, -0.05, 30}));
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_EQ(result.warnings[0].code, ErrorCode::kFitBNegative);
  EXPECT_EQ(result.warnings[0].message,
            "Fitted linear coefficient b=-5.00e-02 is negative. Setting b=0.");
  EXPECT_NEAR(result.raw->b, -0.05, 1e-13);
  EXPECT_EQ(result.corrected->b, 0);
  EXPECT_EQ(result.corrected->a, result.raw->a);
  EXPECT_EQ(result.corrected->c, result.raw->c);
}

TEST(FitWarnings, ExactlyZeroBIsNotNegative) {
  const FitResult result = fit(sample(ladder(50, 100, 100, 10), {1.0 / 4096, 0, 3}));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_EQ(result.raw->b, 0);
}

TEST(FitTarget, IsTheLatencyOfTheBaseChunkWithoutTheFixedCost) {
  const auto target = target_latency({2e-7, 0.02, 15}, 6144);
  EXPECT_FALSE(target.error.has_value());
  EXPECT_NEAR(target.value, 130.4297472, 1e-12);
}

TEST(FitTarget, NotPositive) {
  const auto refused = [](reference::Coefficients f, std::int64_t base) {
    const auto target = target_latency(f, base);
    EXPECT_EQ(target.error, ErrorCode::kFitTargetLatencyNotPositive);
    return target.message;
  };
  EXPECT_EQ(refused({1e-7, -0.02, 5}, 1000),
            "Calculated target_latency=-19.90ms is not positive. Check warmup data quality.");
  EXPECT_EQ(refused({1e-7, 0.02, 5}, 0),
            "Calculated target_latency=0.00ms is not positive. Check warmup data quality.");
  EXPECT_EQ(refused({1, 0, 0}, -2),
            "Calculated target_latency=4.00ms is not positive. Check warmup data quality.");
  EXPECT_EQ(refused({kNan, 0, 0}, 2),
            "Calculated target_latency=nanms is not positive. Check warmup data quality.");
}

}  // namespace
}  // namespace kda::tests
