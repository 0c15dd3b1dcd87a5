#include "reference/fit_bootstrap.hpp"
#include "tests/cuda/fit_batch_cases.hpp"

// The bootstrap on the executor: the CPU's draws, and the CPU's fits of them.

namespace kda::cuda {
namespace {

using tests::ladder;
using tests::sample;
using tests::Samples;

std::vector<FitOutcome> resample(const Samples& samples, std::int64_t resamples,
                                 std::uint64_t seed) {
  Profiles profiles;
  profiles.add(samples);
  FitBatch batch = profiles.batch();
  batch.resamples = resamples;
  batch.seed = seed;
  return run_fit_batch(batch, *open_executor({}));
}

/// Resamples of the CPU that could be solved, in order, against those of the kernel.
double worst_against_cpu(const Samples& samples, std::size_t resamples, std::uint64_t seed) {
  const auto got = resample(samples, static_cast<std::int64_t>(resamples), seed);
  const auto want = reference::bootstrap_fit(samples.lengths, samples.latencies,
                                             {.resamples = resamples, .seed = seed, .threads = 1});
  std::size_t solved = 0;
  double worst = 0;
  for (const FitOutcome& outcome : got) {
    if (!outcome.coefficients) {
      EXPECT_EQ(code_name(outcome.error), "fit_insufficient_rank");
      continue;
    }
    if (solved == want.raw.size()) {
      ADD_FAILURE() << "more solved resamples than the CPU's " << solved;
      break;
    }
    worst = std::max(worst,
                     prediction_error(*outcome.coefficients, want.raw[solved++], samples.lengths));
  }
  EXPECT_EQ(solved, want.raw.size());
  EXPECT_EQ(got.size() - solved, want.unsolved);
  return worst;
}

TEST(FitBootstrap, DrawsAndFitsWhatTheCpuDoes) {
  const Samples noisy = sample(reference::profile_lengths(8192), {2e-7, 0.02, 15}, 2.0, 5);
  for (const std::uint64_t seed : {0ULL, 1ULL, 0xFFFFFFFFFFFFFFFFULL}) {
    EXPECT_LE(worst_against_cpu(noisy, 500, seed), 1e-9) << seed;
  }
}

TEST(FitBootstrap, TenThousandResamplesOf128Points) {
  Samples noisy = sample(reference::profile_lengths(6144), {2e-7, 0.02, 15}, 2.0, 7);
  noisy.lengths.insert(noisy.lengths.begin(), 1);  // dropped, so that 128 are left
  noisy.latencies.insert(noisy.latencies.begin(), 500.0);
  ASSERT_EQ(noisy.lengths.size(), 129U);
  const double worst = worst_against_cpu(noisy, 10000, 1);
  EXPECT_LE(worst, 1e-9);
  RecordProperty("worst_prediction_error", testing::PrintToString(worst));
}

TEST(FitBootstrap, ResamplesOfFewLengthsAreOfTooLowRankWhereTheCpusAre) {
  const Samples few{{9, 10, 10, 10, 10, 10, 20, 30, 40}, {9, 1, 1.5, 1, 1.25, 1, 2, 4, 7}};
  const auto cpu = reference::bootstrap_fit(few.lengths, few.latencies,
                                            {.resamples = 2000, .seed = 3, .threads = 1});
  ASSERT_GT(cpu.unsolved, 100U);
  EXPECT_LE(worst_against_cpu(few, 2000, 3), 1e-9);
}

TEST(FitBootstrap, AResampleDoesNotDependOnHowManyThereAreOrOnTheProfilesBeside) {
  const Samples one = sample(ladder(1, 64, 64, 30), {1e-5, 0.1, 3}, 1.0, 8);
  const Samples two = sample(ladder(1, 100, 10, 50), {1e-4, 0.2, 1}, 1.0, 9);
  Profiles profiles;
  profiles.add(one);
  profiles.add(two);
  FitBatch batch = profiles.batch();
  batch.resamples = 7;
  batch.seed = 42;
  const auto both = run_fit_batch(batch, *open_executor({}));
  const auto first = resample(one, 20, 42);
  const auto second = resample(two, 9, 42);
  ASSERT_EQ(both.size(), 14U);
  for (std::size_t r = 0; r < 7; ++r) {
    EXPECT_EQ(both[r].coefficients->a, first[r].coefficients->a);
    EXPECT_EQ(both[7 + r].coefficients->a, second[r].coefficients->a);
  }
}

TEST(FitBootstrap, AnUnusableSampleSpoilsTheResamplesThatDrawIt) {
  Samples samples = sample(ladder(1, 64, 64, 20), {1e-5, 0.1, 3}, 1.0, 8);
  samples.latencies[4] = std::nan("");
  std::size_t failed = 0;
  for (const FitOutcome& outcome : resample(samples, 200, 1)) {
    if (outcome.error == ErrorCode::kFitFailed) ++failed;
  }
  // (1 - 1/20)^20 = 36 % do not draw it.
  EXPECT_GT(failed, 90U);
  EXPECT_LT(failed, 170U);
}

}  // namespace
}  // namespace kda::cuda
