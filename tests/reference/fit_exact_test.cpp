#include "reference/fit.hpp"
#include "reference/fit_svd.hpp"
#include "tests/reference/fit_samples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using reference::Coefficients;
using reference::fit_quadratic;
using reference::fit_quadratic_svd;
using reference::FitResult;
using reference::profile_lengths;

/// Samples with the least-squares solution of exactly these doubles: normal equations in exact
/// rational arithmetic (Python's fractions), rounded once at the end.
struct ExactCase {
  std::string name;
  Samples samples;
  Coefficients exact;
  bool svd_too = true;  ///< false where long double cannot tell the lengths apart
};

Samples outlier_at_largest() {
  Samples out = profile_6144();
  out.latencies[1] = 7234.07;
  return out;
}

/// Sixteen lengths 2^53 - 8 i with a shape that does not depend on where they lie.
Samples narrow_at_two_to_53() {
  Samples out;
  out.lengths.push_back(5);
  for (std::int64_t i = 0; i < 16; ++i) out.lengths.push_back((std::int64_t{1} << 53) - 8 * i);
  std::vector<std::int64_t> stand_in;
  for (const std::int64_t length : out.lengths) stand_in.push_back(length % 1000 + 1);
  out.latencies = sample(stand_in, {1e-4, 0.25, 3}, 1, 13).latencies;
  return out;
}

std::vector<ExactCase> exact_cases() {
  const auto tens = ladder(50, 100, 100, 10);
  const std::int64_t far = std::int64_t{1} << 53;
  return {
      {"profile of 6144", profile_6144(), {1.9999999999999989e-07, 0.02, 15}},
      {"noisy profile of 8192",
       sample(profile_lengths(8192), {2e-7, 0.02, 12}, 1, 7),
       {2.006688510614908e-07, 0.019995978605261814, 11.963885397281544}},
      {"outlier at the largest length",
       outlier_at_largest(),
       {2.8235989414840585e-05, -0.15191668709180248, 181.65489259842519}},
      {"1000000 to 1000007",
       sample(ladder(999999, 1000000, 1, 8), {1e-8, 2e-3, 5}),
       {9.9999700372184943e-09, 0.0020000599257682119, 4.9700370132941645}},
      {"131072 and on by 64",
       sample(ladder(131072, 131136, 64, 128), {2e-7, 0.02, 15}, 1, 3),
       {2.0362687884102066e-07, 0.019007649758875245, 82.859268307078494}},
      {"four million and on",
       sample(ladder(4000000, 4001000, 1000, 64), {1e-9, 2e-3, 5}, 0.5, 5),
       {1.0228539645312866e-09, 0.001815814373096112, 376.06098734276321}},
      {"multiples of 2^50",
       sample(ladder(1, far / 8, far / 8, 8), {1e-27, 1e-12, 3}, 1, 9),
       {1.0000455142800753e-27, 9.9952280578247006e-13, 3.9334967084594643}},
      {"seven short lengths and 2^53",
       sample({1, 1, 2, 3, 4, 5, 6, 7, far}, {1e-27, 1e-12, 3}, 1, 11),
       {5.368909773639405e-19, -0.0048358840011824547, 2.9675218827916376},
       false},
      {"16 lengths under 2^53",
       narrow_at_two_to_53(),
       {8.5621217087865044e-05, -1542414725487.2234, 6.9464183829530152e+27}},
      {"three lengths",
       sample({7, 1024, 1024, 1024, 4096, 4096, 4096, 7000, 7000, 7000}, {2e-7, 0.02, 15}, 1, 15),
       {2.0695123043909214e-07, 0.020053814819067692, 14.635643864428648}},
      {"b exactly 0", sample(tens, {1.0 / 4096, 0, 3}), {1.0 / 4096, 0, 3}},
      {"c exactly 0", sample(tens, {1.0 / 4096, 0.5, 0}), {1.0 / 4096, 0.5, 0}},
      {"only a", sample(tens, {1.0 / 4096, 0, 0}), {1.0 / 4096, 0, 0}},
      {"nearly linear",
       sample(profile_lengths(6144), {2e-16, 0.02, 15}),
       {1.9999995542244591e-16, 0.02, 15}},
      {"small lengths, tiny c",
       sample({9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1e-3, 0.5, 1e-7}),
       {0.00100000000000001, 0.49999999999999994, 1.0000000003315437e-07}},
      {"concave",
       sample(ladder(100, 200, 100, 19), {-1e-6, 0.5, 3}),
       {-9.9999999999998344e-07, 0.49999999999999994, 3.0000000000000071}},
  };
}

void expect_close(double got, double exact, double relative) {
  EXPECT_LE(std::abs(got - exact), relative * std::abs(exact)) << got << " for " << exact;
}

TEST(FitExact, CoefficientsMatchRationalArithmetic) {
  for (const ExactCase& c : exact_cases()) {
    SCOPED_TRACE(c.name);
    const FitResult result = fit_quadratic(c.samples.lengths, c.samples.latencies);
    ASSERT_TRUE(result.raw.has_value()) << result.message;
    expect_close(result.raw->a, c.exact.a, 2e-12);
    expect_close(result.raw->b, c.exact.b, 2e-12);
    expect_close(result.raw->c, c.exact.c, 2e-12);
    EXPECT_EQ(result.warnings.empty(), !result.ok() || c.exact.b >= 0);
  }
}

TEST(FitExact, TheTwoMethodsAgreeOnPredictions) {
  for (const ExactCase& c : exact_cases()) {
    if (!c.svd_too) continue;
    SCOPED_TRACE(c.name);
    const FitResult qr = fit_quadratic(c.samples.lengths, c.samples.latencies);
    const FitResult svd = fit_quadratic_svd(c.samples.lengths, c.samples.latencies);
    ASSERT_TRUE(svd.raw.has_value()) << svd.message;
    EXPECT_EQ(qr.error, svd.error);
    EXPECT_EQ(qr.warnings.size(), svd.warnings.size());
    const double bound = 1e-10 * largest(c.samples.latencies);
    for (std::size_t i = 0; i < qr.quality->residuals.size(); ++i) {
      EXPECT_LE(std::abs(qr.quality->residuals[i] - svd.quality->residuals[i]), bound) << i;
    }
    expect_close(svd.quality->condition, qr.quality->condition, 1e-6);
    expect_close(svd.raw->a, c.exact.a, std::max(1e-10, 1e-13 * qr.quality->condition));
  }
}

TEST(FitExact, RefusalsOfTheTwoMethodsAreTheSame) {
  const Samples one{std::vector<std::int64_t>(9, 4096), std::vector<double>(9, 100.0)};
  const FitResult svd = fit_quadratic_svd(one.lengths, one.latencies);
  EXPECT_EQ(svd.error, ErrorCode::kFitInsufficientRank);
  EXPECT_EQ(svd.message, fit_quadratic(one.lengths, one.latencies).message);
}

// Every retained quadratic of a design must have residuals orthogonal to it, whatever the range.
TEST(FitExact, ResidualsAreOrthogonalToTheDesign) {
  for (const ExactCase& c : exact_cases()) {
    SCOPED_TRACE(c.name);
    const FitResult result = fit_quadratic(c.samples.lengths, c.samples.latencies);
    const double bound = 1e-13 * static_cast<double>(c.samples.lengths.size());
    const std::int64_t centre = c.samples.lengths[1];
    double range = 0;
    for (std::size_t i = 1; i < c.samples.lengths.size(); ++i) {
      range = std::max(range, std::abs(static_cast<double>(c.samples.lengths[i] - centre)));
    }
    std::array<double, 3> moments{};
    for (std::size_t i = 1; i < c.samples.lengths.size(); ++i) {
      const double x = static_cast<double>(c.samples.lengths[i] - centre) / range;
      const double residual = result.quality->residuals[i - 1];
      moments[0] += residual;
      moments[1] += residual * x;
      moments[2] += residual * x * x;
    }
    for (const double moment : moments) {
      EXPECT_LE(std::abs(moment), bound * largest(c.samples.latencies));
    }
  }
}

// Latencies in ms scale the answer; a power of two does so to the bit, over all of a double's
// range.
TEST(FitExact, ScalesWithTheLatencies) {
  const Samples samples = sample(profile_lengths(8192), {2e-7, 0.02, 12}, 1, 7);
  const FitResult plain = fit_quadratic(samples.lengths, samples.latencies);
  for (const int exponent : {-900, -300, 300, 900}) {
    Samples scaled = samples;
    for (double& latency : scaled.latencies) latency = std::ldexp(latency, exponent);
    const FitResult result = fit_quadratic(scaled.lengths, scaled.latencies);
    ASSERT_TRUE(result.ok()) << result.message;
    EXPECT_EQ(result.raw->a, std::ldexp(plain.raw->a, exponent));
    EXPECT_EQ(result.raw->b, std::ldexp(plain.raw->b, exponent));
    EXPECT_EQ(result.raw->c, std::ldexp(plain.raw->c, exponent));
    expect_close(result.quality->r_squared, plain.quality->r_squared, 1e-15);
  }
}

TEST(FitExact, OrderOfTheSamplesHardlyMatters) {
  Samples samples = sample(profile_lengths(8192), {2e-7, 0.02, 12}, 1, 7);
  const FitResult plain = fit_quadratic(samples.lengths, samples.latencies);
  std::reverse(samples.lengths.begin() + 1, samples.lengths.end());
  std::reverse(samples.latencies.begin() + 1, samples.latencies.end());
  const FitResult reversed = fit_quadratic(samples.lengths, samples.latencies);
  expect_close(reversed.raw->a, plain.raw->a, 1e-12);
  expect_close(reversed.raw->c, plain.raw->c, 1e-12);
}

// NIST Statistical Reference Datasets, linear regression, "Pontius" (load cells; a published
// quadratic). Certified values as printed there. Its B2 is negative.
TEST(FitExact, NistPontius) {
  const std::array<double, 40> response{
      .11019,  .21956,  .32949,  .43899,  .54803,  .65694,  .76562,  .87487,  .98292,  1.09146,
      1.20001, 1.30822, 1.41599, 1.52399, 1.63194, 1.73947, 1.84646, 1.95392, 2.06128, 2.16844,
      .11052,  .22018,  .32939,  .43886,  .54798,  .65739,  .76596,  .87474,  .98300,  1.09150,
      1.20004, 1.30818, 1.41613, 1.52408, 1.63159, 1.73965, 1.84696, 1.95445, 2.06177, 2.16829};
  Samples samples{{1}, {1e6}};  // thrown away with the first sample
  for (std::size_t i = 0; i < response.size(); ++i) {
    samples.lengths.push_back(150000 * static_cast<std::int64_t>(i % 20 + 1));
    samples.latencies.push_back(response[i]);
  }
  for (const auto method : {fit_quadratic, fit_quadratic_svd}) {
    const FitResult result = method(samples.lengths, samples.latencies);
    EXPECT_EQ(result.error, ErrorCode::kFitANotPositive);
    ASSERT_TRUE(result.raw && result.quality);
    expect_close(result.raw->c, 0.673565789473684e-03, 1e-12);
    expect_close(result.raw->b, 0.732059160401003e-06, 1e-12);
    expect_close(result.raw->a, -0.316081871345029e-14, 1e-12);
    expect_close(result.quality->standard_errors.c, 0.107938612033077e-03, 1e-12);
    expect_close(result.quality->standard_errors.b, 0.157817399981659e-09, 1e-12);
    expect_close(result.quality->standard_errors.a, 0.486652849992036e-16, 1e-12);
    expect_close(result.quality->residual_sd, 0.205177424076185e-03, 1e-12);
    expect_close(result.quality->r_squared, 0.999999900178537, 1e-14);
  }
}

TEST(FitExact, ConditionOfTheUnscaledDesign) {
  // 50-digit singular values of [l^2, l, 1].
  const auto condition = [](const std::vector<std::int64_t>& lengths) {
    return fit_quadratic(lengths, sample(lengths, {1, 1, 1}).latencies).quality->condition;
  };
  expect_close(condition(profile_lengths(6144)), 79923916.914667807, 1e-9);
  expect_close(condition(ladder(1, 1000000, 1, 8)), 2.1822094530576803e+23, 1e-9);
  expect_close(condition({1, 1, 2, 3, 4, 5, 6, 7, std::int64_t{1} << 53}), 6.9938003765630162e+31,
               1e-9);
}

}  // namespace
}  // namespace kda::tests
