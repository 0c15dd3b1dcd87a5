#include "harness/run/run_bias.hpp"

#include "harness/case/case_line.hpp"
#include "harness/report/report.hpp"
#include "harness/run/oracle.hpp"
#include "harness/run/run.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

/// A passed case whose errors lean by `mean`.
CaseResult leaning(const std::string& implementation, double mean, std::int64_t rows = 64) {
  CaseResult result;
  result.implementation = implementation;
  result.comparison.emplace();
  TensorReport o;
  o.name = "o";
  o.use.emplace();
  o.use->sums.rows = rows;
  o.use->sums.count = 1000;
  o.use->sums.signed_z = mean * 1000;
  result.comparison->tensors.push_back(o);
  return result;
}

std::vector<CaseResult> leaning_cases(int count, double mean, double spread) {
  std::vector<CaseResult> results;
  for (int i = 0; i < count; ++i)
    results.push_back(leaning("x", mean + (i % 2 == 0 ? spread : -spread)));
  return results;
}

TEST(RunBias, FailsOnlyWhenLargeAndSure) {
  EXPECT_TRUE(run_biases(leaning_cases(20, -0.45, 0.1)).front().failed);
  EXPECT_TRUE(run_biases(leaning_cases(20, 0.45, 0.1)).front().failed);
  EXPECT_FALSE(run_biases(leaning_cases(20, -0.14, 0.01)).front().failed) << "small";
  EXPECT_FALSE(run_biases(leaning_cases(20, -0.45, 0.5)).front().failed) << "not sure";
  EXPECT_FALSE(run_biases(leaning_cases(7, -0.45, 0.01)).front().failed) << "too few";
  EXPECT_TRUE(run_biases(leaning_cases(8, -0.45, 0)).front().failed) << "all alike";
}

TEST(RunBias, MeanAndStudentT) {
  const RunBias bias = run_biases({leaning("x", 1), leaning("x", 2), leaning("x", 3)}).front();
  EXPECT_EQ(bias.cases, 3);
  EXPECT_NEAR(bias.mean, 2, 1e-12);
  EXPECT_NEAR(bias.t, 2 / (1 / std::sqrt(3.0)), 1e-12);
}

TEST(RunBias, CountsWhatSaysSomething) {
  std::vector<CaseResult> results{leaning("x", 1), leaning("y", 2), leaning("x", 5, 15)};
  results.push_back(leaning("x", 5));
  results.back().verdict = Verdict::kFailed;
  results.emplace_back();  // a case without tensors
  const std::vector<RunBias> biases = run_biases(results);
  ASSERT_EQ(biases.size(), 2U);
  EXPECT_EQ(biases[0].implementation, "x");
  EXPECT_EQ(biases[0].cases, 1);
  EXPECT_EQ(biases[1].implementation, "y");
}

TEST(RunBias, AFailedOneFailsTheRun) {
  RunReport report;
  report.results = leaning_cases(20, 0, 0.1);
  report.counts[static_cast<std::size_t>(Verdict::kPassed)] = 20;
  report.biases = run_biases(report.results);
  EXPECT_EQ(report.exit_status(), Exit::kSuccess);
  report.biases.front().failed = true;
  EXPECT_EQ(report.exit_status(), Exit::kFailed);
}

/// An implementation that rounds operands to bf16 as an honest one does, and its output as told.
CaseResult judged_with(const std::string& line, bool truncates) {
  const Case test_case = make_case(parse_case_line(line));
  auto got = expected_from(test_case, "fast").tensors;
  Tensor& o = got.at("o");
  for (std::int64_t i = 0; i < o.size(); ++i) {
    const double value = load(o.view(), i);
    const Bf16 rounded = to_bf16(value);
    const Bf16 cut{static_cast<std::uint16_t>(detail::bits_of(detail::round_to_odd(value)) >> 16)};
    o.store(i, static_cast<double>(to_float(truncates ? cut : rounded)));
  }
  CaseResult result = judge_result(
      test_case, got, {}, "", {.policy = &find_policy("derived"), .kernels = {}, .formats = {}});
  result.implementation = "x";
  return result;
}

TEST(RunBias, TruncatedResultsOfSixteenBitOperandsFailTogether) {
  std::vector<CaseResult> cut;
  std::vector<CaseResult> rounded;
  for (int seed = 1; seed <= 9; ++seed) {
    const std::string line = "op=chunk_kda T=48 K=32 V=16 l2norm=1 seed=" + std::to_string(seed);
    cut.push_back(judged_with(line, true));
    rounded.push_back(judged_with(line, false));
    EXPECT_EQ(cut.back().verdict, Verdict::kPassed) << "one case cannot tell";
  }
  const RunBias honest = run_biases(rounded).front();
  EXPECT_FALSE(honest.failed) << to_text(honest);
  EXPECT_LT(std::abs(honest.mean), 0.05);
  const RunBias biased = run_biases(cut).front();
  EXPECT_TRUE(biased.failed) << to_text(biased);
  EXPECT_LT(biased.mean, -0.3);
  EXPECT_NE(to_text(biased).find("lean towards 0"), std::string::npos);
}

TEST(RunBias, AnInfiniteTKeepsItsSignInReports) {
  RunReport report;
  report.biases = run_biases(leaning_cases(8, -0.5, 0));
  EXPECT_EQ(to_json(report).at("bias").at(0).at("t"), "-inf");
  report.biases = run_biases(leaning_cases(8, 0.5, 0));
  EXPECT_EQ(to_json(report).at("bias").at(0).at("t"), "inf");
}

}  // namespace
}  // namespace kda::harness
