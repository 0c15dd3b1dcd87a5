#include "reference/fit_diagnostics.hpp"

#include "reference/fit_statistics.hpp"
#include "tests/reference/fit_samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using reference::Bootstrap;
using reference::bootstrap_fit;
using reference::Coefficients;
using reference::diagnose;
using reference::Diagnostics;
using reference::DiagnosticsOptions;
using reference::fit_quadratic;
using reference::FitDoubt;
using reference::FitResult;
using reference::leave_one_out;
using reference::profile_lengths;

Diagnostics diagnose_fit(const Samples& samples, std::int64_t base = 8192,
                         std::size_t resamples = 500) {
  DiagnosticsOptions options;
  options.base_chunk_size = base;
  options.bootstrap.resamples = resamples;
  return diagnose(samples.lengths, samples.latencies,
                  fit_quadratic(samples.lengths, samples.latencies), options);
}

std::set<std::string> doubts(const Diagnostics& diagnostics) {
  std::set<std::string> out;
  for (const auto& found : diagnostics.doubts) out.emplace(name(found.doubt));
  return out;
}

Samples noisy(std::uint64_t seed = 7) {
  return sample(profile_lengths(8192), {2e-7, 0.02, 12}, 2, seed);
}

TEST(FitStatistics, TailsMatchFortyDigitArithmetic) {
  const auto close = [](double got, double exact) {
    EXPECT_LE(std::abs(got - exact), 1e-12 * exact) << got << " for " << exact;
  };
  close(reference::student_t_upper_tail(0, 5), 0.5);
  close(reference::student_t_upper_tail(1, 1), 0.25);
  close(reference::student_t_upper_tail(2.5, 4), 0.033383272405994073);
  close(reference::student_t_upper_tail(-1.5, 124), 0.93192187514117501);
  close(reference::student_t_upper_tail(40, 124), 4.9670647621328756e-73);
  close(reference::student_t_upper_tail(6, 3), 0.0046363574461423337);
  close(reference::f_upper_tail(1, 3, 5), 0.46485478999363503);
  close(reference::f_upper_tail(4.5, 7, 120), 0.00017552963313873106);
  close(reference::f_upper_tail(0.2, 120, 7), 0.99994606122396219);
  close(reference::f_upper_tail(300, 2, 10), 1.183997607870177e-9);
  close(reference::normal_lower_tail(-3), 0.0013498980316300945);
  close(reference::normal_lower_tail(1.5), 0.93319279873114193);
  close(reference::normal_lower_tail(-10), 7.6198530241605261e-24);
  EXPECT_EQ(reference::f_upper_tail(std::numeric_limits<double>::infinity(), 3, 5), 0);
  EXPECT_TRUE(std::isnan(reference::student_t_upper_tail(std::nan(""), 5)));
}

TEST(FitBootstrap, SameBitsForAnyNumberOfThreads) {
  const Samples samples = noisy();
  const auto run = [&](unsigned threads, std::uint64_t seed) {
    return bootstrap_fit(samples.lengths, samples.latencies,
                         {.resamples = 1000, .seed = seed, .threads = threads});
  };
  const Bootstrap one = run(1, 5);
  ASSERT_EQ(one.raw.size(), 1000U);
  for (const unsigned threads : {2U, 3U, 7U}) {
    const Bootstrap many = run(threads, 5);
    ASSERT_EQ(many.raw.size(), one.raw.size());
    for (std::size_t i = 0; i < one.raw.size(); ++i) {
      ASSERT_EQ(many.raw[i].a, one.raw[i].a);
      ASSERT_EQ(many.raw[i].c, one.raw[i].c);
    }
  }
  EXPECT_NE(run(1, 6).raw[0].a, one.raw[0].a);
}

TEST(FitBootstrap, SpreadAgreesWithTheStandardErrors) {
  const Samples samples = noisy();
  const FitResult fit = fit_quadratic(samples.lengths, samples.latencies);
  const Bootstrap bootstrap = bootstrap_fit(samples.lengths, samples.latencies);
  EXPECT_EQ(bootstrap.raw.size(), 10000U);
  EXPECT_EQ(bootstrap.unsolved, 0U);
  double mean = 0;
  double square = 0;
  for (const Coefficients& f : bootstrap.raw) mean += f.a / 10000;
  for (const Coefficients& f : bootstrap.raw) square += (f.a - mean) * (f.a - mean) / 10000;
  EXPECT_NEAR(std::sqrt(square) / fit.quality->standard_errors.a, 1, 0.15);
  EXPECT_NEAR(mean / fit.raw->a, 1, 0.01);
}

TEST(FitBootstrap, IntervalsCoverTheTruthAboutAsOftenAsTheySay) {
  int covered = 0;
  constexpr int kProfiles = 200;
  for (int seed = 0; seed < kProfiles; ++seed) {
    const Samples samples = noisy(static_cast<std::uint64_t>(1000 + seed));
    const auto interval =
        percentile_interval(bootstrap_fit(samples.lengths, samples.latencies, {.resamples = 400}),
                            0.95, [](const Coefficients& f) { return f.a; });
    if (interval->low <= 2e-7 && 2e-7 <= interval->high) ++covered;
  }
  EXPECT_GE(covered, 180);  // 190 expected, standard deviation 3
  EXPECT_LE(covered, 199);
}

TEST(FitBootstrap, ResamplesOfTooFewLengthsAreCountedNotSolved) {
  // Of three lengths one is held by a single sample, which a resample misses one time in e.
  const Samples samples = sample({1, 10, 10, 10, 10, 20, 20, 20, 20, 30}, {1e-3, 0.1, 1}, 0.1);
  const Bootstrap bootstrap =
      bootstrap_fit(samples.lengths, samples.latencies, {.resamples = 2000});
  EXPECT_EQ(bootstrap.raw.size() + bootstrap.unsolved, 2000U);
  EXPECT_NEAR(static_cast<double>(bootstrap.unsolved) / 2000, std::exp(-1.0), 0.05);
}

TEST(FitBootstrap, NothingFromRefusedSamples) {
  const Bootstrap bootstrap = bootstrap_fit({}, {});
  EXPECT_TRUE(bootstrap.raw.empty());
  EXPECT_FALSE(
      percentile_interval(bootstrap, 0.95, [](const Coefficients& f) { return f.a; }).has_value());
}

TEST(FitInfluence, DeletionFormulasEqualFittingAgain) {
  const Samples samples = noisy();
  const FitResult fit = fit_quadratic(samples.lengths, samples.latencies);
  const auto influence = leave_one_out(samples.lengths, samples.latencies, *fit.raw, *fit.quality);
  ASSERT_EQ(influence.size(), samples.lengths.size() - 1);
  double leverages = 0;
  for (const auto& one : influence) {
    Samples rest = samples;
    const auto at = static_cast<std::ptrdiff_t>(one.index);
    rest.lengths.erase(rest.lengths.begin() + at);
    rest.latencies.erase(rest.latencies.begin() + at);
    const FitResult again = fit_quadratic(rest.lengths, rest.latencies);
    EXPECT_NEAR(one.without.a / again.raw->a, 1, 1e-10);
    EXPECT_NEAR(one.without.b / again.raw->b, 1, 1e-10);
    EXPECT_NEAR(one.without.c / again.raw->c, 1, 1e-10);
    EXPECT_NEAR(one.deleted_residual, one.latency - (*again.raw)(static_cast<double>(one.length)),
                1e-9);
    leverages += one.leverage;
  }
  EXPECT_NEAR(leverages, 3, 1e-12);  // trace of the hat matrix
}

TEST(FitDiagnostics, AGoodProfileRaisesNoDoubt) {
  const Diagnostics diagnostics = diagnose_fit(noisy());
  EXPECT_TRUE(doubts(diagnostics).empty());
  EXPECT_EQ(diagnostics.distinct_lengths, 127U);
  ASSERT_TRUE(diagnostics.a && diagnostics.target && diagnostics.curvature);
  EXPECT_LT(diagnostics.a->low, 2e-7);
  EXPECT_GT(diagnostics.a->high, 2e-7);
  EXPECT_LT(diagnostics.curvature->p, 1e-6);
  ASSERT_TRUE(diagnostics.lack_of_fit.has_value());
}

TEST(FitDiagnostics, FalseAlarmsAreRare) {
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    alarms += doubts(diagnose_fit(noisy(seed), 8192, 0)).empty() ? 0 : 1;
  }
  EXPECT_LE(alarms, 3);
}

TEST(FitDiagnostics, ExactDataIsNotTested) {
  const Diagnostics diagnostics = diagnose_fit(profile_6144(), 6144);
  EXPECT_TRUE(doubts(diagnostics).empty());
  EXPECT_FALSE(diagnostics.curvature.has_value());
  EXPECT_FALSE(diagnostics.lack_of_fit.has_value());
}

TEST(FitDiagnostics, AnOutlierIsNamedWithIndexLengthAndValue) {
  for (const bool exact : {false, true}) {
    Samples samples = exact ? profile_6144() : sample(profile_lengths(6144), {2e-7, 0.02, 15}, 1);
    samples.latencies[1] = 7234.07;
    const Diagnostics diagnostics = diagnose_fit(samples, 6144);
    EXPECT_TRUE(doubts(diagnostics).contains("outlier"));
    const auto& first = diagnostics.doubts.front();
    EXPECT_EQ(first.doubt, FitDoubt::kOutlier);
    EXPECT_TRUE(first.message.starts_with("sample 1 (length 7620, 7234.07 ms) is +"))
        << first.message;
    EXPECT_NEAR(diagnostics.influence[0].without.a, 2e-7, 1e-8);
    // Named once: the others look wrong only because of it.
    EXPECT_EQ(std::ranges::count(diagnostics.doubts, FitDoubt::kOutlier,
                                 &reference::FitDoubtFound::doubt),
              1);
  }
}

TEST(FitDiagnostics, OutlierWithinTheProfile) {
  Samples samples = noisy();
  samples.latencies[64] += 20;
  const Diagnostics diagnostics = diagnose_fit(samples);
  ASSERT_EQ(doubts(diagnostics), std::set<std::string>{"outlier"});
  EXPECT_TRUE(diagnostics.doubts[0].message.starts_with("sample 64 (length "));
}

TEST(FitDiagnostics, SeveralOutliersAreNamedWorstFirst) {
  Samples samples = noisy();
  samples.latencies[40] += 35;
  samples.latencies[90] -= 40;
  const Diagnostics diagnostics = diagnose_fit(samples);
  ASSERT_EQ(diagnostics.doubts.size(), 2U);
  EXPECT_TRUE(diagnostics.doubts[0].message.starts_with("sample 90 "));
  EXPECT_TRUE(diagnostics.doubts[1].message.starts_with("sample 40 "));
}

TEST(FitDiagnostics, FewDistinctLengths) {
  const Samples samples = sample({1, 100, 100, 200, 300, 400, 500, 600, 700}, {1e-3, 0.1, 5}, 0.01);
  const Diagnostics diagnostics = diagnose_fit(samples, 500);
  EXPECT_EQ(diagnostics.distinct_lengths, 7U);
  EXPECT_TRUE(doubts(diagnostics).contains("few_distinct_lengths"));
}

TEST(FitDiagnostics, DecisiveSample) {
  const Samples samples =
      sample({1, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 8192}, {1e-3, 0.1, 5}, 0.01);
  EXPECT_TRUE(doubts(diagnose_fit(samples, 200)).contains("decisive_sample"));
}

TEST(FitDiagnostics, LackOfFit) {
  // Tiles: the cost jumps at every 1024 tokens.
  Samples steps = sample(profile_lengths(8192), {2e-7, 0.02, 12}, 1);
  for (std::size_t i = 0; i < steps.lengths.size(); ++i) {
    steps.latencies[i] += 10 * static_cast<double>(steps.lengths[i] / 1024 % 2);
  }
  EXPECT_TRUE(doubts(diagnose_fit(steps)).contains("lack_of_fit"));
  // The same by repeated lengths, whose scatter is small.
  Samples repeats;
  for (const std::int64_t length : ladder(1, 100, 100, 10)) {
    for (int times = 0; times < 3; ++times) repeats.lengths.push_back(length);
  }
  repeats = sample(repeats.lengths, {1e-4, 0.1, 3}, 0.1);
  EXPECT_FALSE(doubts(diagnose_fit(repeats, 500)).contains("lack_of_fit"));
  for (std::size_t i = 0; i < repeats.lengths.size(); ++i) {
    repeats.latencies[i] += repeats.lengths[i] % 200 == 0 ? 1 : 0;
  }
  const Diagnostics found = diagnose_fit(repeats, 500);
  EXPECT_TRUE(doubts(found).contains("lack_of_fit"));
  EXPECT_EQ(found.lack_of_fit->method, "F test against repeated lengths");
}

TEST(FitDiagnostics, NearlyLinearModels) {
  // A linear-attention hybrid: a is noise, its sign a coin toss, and the doubt says so either way.
  int positive = 0;
  int doubted = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Samples samples = sample(profile_lengths(6144), {0, 0.02, 15}, 3, seed);
    const Diagnostics diagnostics = diagnose_fit(samples, 6144, 0);
    positive += fit_quadratic(samples.lengths, samples.latencies).ok() ? 1 : 0;
    doubted += doubts(diagnostics).contains("curvature_uncertain") ? 1 : 0;
  }
  EXPECT_NEAR(positive, 50, 20);
  EXPECT_GE(doubted, 95);
  const Diagnostics one =
      diagnose_fit(sample(profile_lengths(6144), {0, 0.02, 15}, 3, 4), 6144, 1000);
  EXPECT_GT(one.bootstrap.share_a_not_positive, 0.01);
  EXPECT_LT(one.bootstrap.share_a_not_positive, 0.99);
}

TEST(FitDiagnostics, TargetUncertainAndBaseOutside) {
  const Samples wild = sample(ladder(1, 1000, 1000, 9), {2e-7, 0.02, 15}, 200, 3);
  EXPECT_TRUE(doubts(diagnose_fit(wild, 8192)).contains("target_uncertain"));
  EXPECT_TRUE(doubts(diagnose_fit(noisy(), 20000)).contains("base_outside_samples"));
}

TEST(FitDiagnostics, RefusedSamplesGiveNone) {
  const Diagnostics diagnostics = diagnose_fit({{1, 2}, {1, 2}});
  EXPECT_TRUE(diagnostics.doubts.empty());
  EXPECT_TRUE(diagnostics.influence.empty());
}

TEST(FitDiagnostics, TableOfDoubtsIsInOrder) {
  const auto table = reference::all_fit_doubts();
  EXPECT_EQ(table.size(), 7U);
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(table[i].doubt), i);
    EXPECT_EQ(name(table[i].doubt), table[i].name);
  }
}

}  // namespace
}  // namespace kda::tests
