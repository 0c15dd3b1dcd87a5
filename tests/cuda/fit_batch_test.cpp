#include "cuda/fit_batch.hpp"

#include "tests/cuda/fit_batch_cases.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

// Fits on the executor, against the reference.

namespace kda::cuda {
namespace {

using tests::ladder;
using tests::sample;
using tests::Samples;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMaxLength = std::int64_t{1} << 53;

/// Both sides promise coefficients right to about 1e-12; terms of f may be 1e3 times f.
constexpr double kTolerance = 1e-11;

using Named = std::vector<std::pair<std::string, Samples>>;

FitOutcome fit(const Samples& samples, const simt::Options& options = {}) {
  return run_fit(samples.lengths, samples.latencies, *open_executor(options));
}

Named solvable() {
  Named all;
  for (const std::int64_t chunk : {512, 1024, 2048, 4096, 6144, 8192, 16384}) {
    const auto lengths = reference::profile_lengths(chunk);
    const std::string name = "profile " + std::to_string(chunk);
    all.emplace_back(name, sample(lengths, {2e-7, 0.02, 15}));
    all.emplace_back(name + " noisy", sample(lengths, {2e-7, 0.02, 15}, 0.5, 3));
  }
  all.emplace_back("eight", sample(ladder(1, 100, 100, 8), {1e-4, 0.5, 3}));
  all.emplace_back("1000 samples", sample(ladder(1, 64, 37, 1000), {1e-6, 0.01, 3}, 1.0));
  all.emplace_back("narrow at 131072", sample(ladder(1, 131072, 1, 16), {1e-7, 0.01, 5}, 0.1));
  all.emplace_back("narrow at a million", sample(ladder(1, 1000000, 1, 8), {1e-7, 0.01, 5}, 0.1));
  all.emplace_back("millions", sample(ladder(1, 4000000, 100000, 32), {1e-9, 0.01, 5}, 1.0));
  all.emplace_back("up to 2^53",
                   sample(ladder(1, kMaxLength / 16, kMaxLength / 16, 16), {1e-26, 1e-13, 5}, 0.1));
  all.emplace_back("three lengths", Samples{{9, 10, 20, 30, 10, 20, 30, 10, 20, 30},
                                            {9, 1.5, 2.25, 4, 1.5, 2.5, 4, 1.25, 2.25, 4}});
  all.emplace_back("three lopsided",
                   Samples{{9, 1, 2, kMaxLength, 1, 2, kMaxLength, 1, 2, kMaxLength},
                           {9, 1, 2, 1e14, 1, 2.5, 1e14, 1, 2, 1e14}});
  all.emplace_back("three neighbours at the end",
                   Samples{{9, kMaxLength - 2, kMaxLength - 1, kMaxLength, kMaxLength - 2,
                            kMaxLength - 1, kMaxLength, kMaxLength - 2, kMaxLength},
                           {9, 1, 2, 4, 1, 2, 4, 1, 4.5}});
  all.emplace_back("linear", sample(ladder(1, 64, 64, 20), {0, 0.25, 2}));
  all.emplace_back("constant", sample(ladder(1, 64, 64, 20), {0, 0, 2}));
  all.emplace_back("zero", sample(ladder(1, 64, 64, 20), {0, 0, 0}));
  all.emplace_back("concave", sample(ladder(1, 64, 64, 20), {-1e-4, 1, 2}, 0.1));
  all.emplace_back("b negative", sample(ladder(1, 64, 64, 20), {1e-4, -0.01, 20}, 0.1));
  all.emplace_back("tiny latencies", sample(ladder(1, 64, 64, 20), {1e-310, 1e-309, 1e-305}));
  all.emplace_back("huge latencies", sample(ladder(1, 64, 64, 20), {1e299, 1e302, 1e304}));
  return all;
}

TEST(FitBatch, AgreesWithTheReference) {
  double worst = 0;
  for (const auto& [name, samples] : solvable()) {
    const FitOutcome got = fit(samples);
    expect_like_reference(got, samples, kTolerance, name);
    const auto want = reference::fit_quadratic(samples.lengths, samples.latencies);
    worst = std::max(worst, prediction_error(*got.coefficients, *want.raw, samples.lengths));
  }
  RecordProperty("worst_prediction_error", testing::PrintToString(worst));
}

TEST(FitBatch, CoefficientsAreRightToTheirLastDigits) {
  for (const auto& [name, samples] : solvable()) {
    const FitOutcome got = fit(samples);
    const auto want = reference::fit_quadratic(samples.lengths, samples.latencies);
    const auto close = [](double x, double y) { return std::abs(x - y) <= 1e-11 * std::abs(y); };
    EXPECT_TRUE(close(got.coefficients->a, want.raw->a)) << name << " " << got.coefficients->a;
    EXPECT_TRUE(close(got.coefficients->b, want.raw->b)) << name << " " << got.coefficients->b;
    EXPECT_TRUE(close(got.coefficients->c, want.raw->c)) << name << " " << got.coefficients->c;
  }
}

/// Samples that no fit comes of, with the code and what makes it the first one.
std::vector<std::pair<ErrorCode, Samples>> refused() {
  const auto spoiled = [](std::size_t at, std::int64_t length, double latency) {
    Samples samples = sample(ladder(1, 64, 64, 20), {1e-4, 1, 2});
    if (length != 64) samples.lengths[at] = length;
    if (latency != 1) samples.latencies[at] = latency;
    return samples;
  };
  return {
      {ErrorCode::kFitNotEnoughPoints, {}},
      {ErrorCode::kFitNotEnoughPoints, {{5}, {1}}},
      {ErrorCode::kFitNotEnoughPoints, sample(ladder(1, 64, 64, 7), {1e-4, 1, 2})},
      {ErrorCode::kFitNotEnoughPoints, {{1, 2, 3}, {1, kNan, 3}}},
      {ErrorCode::kFitFailed, spoiled(1, 64, kNan)},
      {ErrorCode::kFitFailed, spoiled(20, 64, kInf)},
      {ErrorCode::kFitFailed, spoiled(7, 64, -kInf)},
      {ErrorCode::kFitFailed, spoiled(7, 0, 1)},
      {ErrorCode::kFitFailed, spoiled(7, -3, 1)},
      {ErrorCode::kFitFailed, spoiled(7, kMaxLength + 1, 1)},
      {ErrorCode::kFitFailed, spoiled(7, std::numeric_limits<std::int64_t>::min(), 1)},
      {ErrorCode::kFitFailed, {std::vector<std::int64_t>(9, 5), std::vector<double>(9, kNan)}},
      // Slopes of 1e308 ms a token and more: a coefficient beyond a double.
      {ErrorCode::kFitFailed,
       {{9, 1, 2, 3, 1, 2, 3, 1, 2, 3},
        {9, 1.7e308, -1.7e308, 1.7e308, 1.7e308, -1.7e308, 1.7e308, 1.7e308, -1.7e308, 1.7e308}}},
      {ErrorCode::kFitInsufficientRank,
       {std::vector<std::int64_t>(9, 5), std::vector<double>(9, 1)}},
      {ErrorCode::kFitInsufficientRank, {{3, 1, 2, 1, 2, 1, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}},
      {ErrorCode::kFitInsufficientRank,
       {{3, kMaxLength, kMaxLength, kMaxLength - 1, kMaxLength, kMaxLength, kMaxLength, kMaxLength,
         kMaxLength},
        {1, 2, 3, 4, 5, 6, 7, 8, 9}}},
  };
}

TEST(FitBatch, EveryErrorInTheReferencesOrder) {
  for (const auto& [code, samples] : refused()) {
    const FitOutcome got = fit(samples);
    EXPECT_EQ(code_name(got.error), name(code));
    EXPECT_FALSE(got.coefficients.has_value());
    expect_like_reference(got, samples, 0, std::string(name(code)));
  }
  const FitOutcome mismatch =
      run_fit(std::vector<std::int64_t>{1, 2}, std::vector<double>{kNan}, *open_executor({}));
  EXPECT_EQ(code_name(mismatch.error), "fit_length_mismatch");
}

TEST(FitBatch, TheFirstSampleIsNotLookedAt) {
  const Samples good = sample(ladder(1, 64, 64, 20), {1e-4, 1, 2});
  const FitCoefficients want = *fit(good).coefficients;
  for (const auto& [length, latency] :
       {std::pair{std::int64_t{-1}, kNan}, {kMaxLength + 9, kInf}}) {
    Samples cold = good;
    cold.lengths[0] = length;
    cold.latencies[0] = latency;
    const FitOutcome got = fit(cold);
    EXPECT_FALSE(got.error.has_value());
    EXPECT_EQ(got.coefficients->a, want.a);
  }
}

TEST(FitBatch, CurvatureIsJudgedAgainstTheLatencies) {
  // a D^2 = a 1024^2 and max|latency| = 1 (to 1e-12): the limit is a = 2^-20 * 1e-12.
  for (const double factor : {0.5, 2.0}) {
    const Samples samples = sample(ladder(1, 1, 128, 17), {factor * 0x1p-20 * 1e-12, 0, 1});
    expect_like_reference(fit(samples), samples, kTolerance, std::to_string(factor));
  }
}

std::array<std::uint64_t, 3> bits(const FitOutcome& outcome) {
  return std::bit_cast<std::array<std::uint64_t, 3>>(
      outcome.coefficients.value_or(FitCoefficients{}));
}

TEST(FitBatch, ABatchIsItsFitsOneByOneToTheBitInEveryOrder) {
  Profiles profiles;
  std::vector<FitOutcome> alone;
  for (const auto& [name, samples] : solvable()) {
    profiles.add(samples);
    alone.push_back(fit(samples));
  }
  for (const auto& [code, samples] : refused()) {
    profiles.add(samples);
    alone.push_back(fit(samples));
  }
  for (const Mode& mode : all_modes()) {
    const auto all = run_fit_batch(profiles.batch(), *open_executor(mode.options(1, 2)));
    ASSERT_EQ(all.size(), alone.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(code_name(all[i].error), code_name(alone[i].error)) << mode.name << " " << i;
      EXPECT_EQ(bits(all[i]), bits(alone[i])) << mode.name << " " << i;
    }
  }
}

TEST(FitBatch, ManyProfilesAtOnce) {
  Profiles profiles;
  std::vector<Samples> all;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto n = static_cast<std::int64_t>(8 + i * 7 % 90);
    const double slope = 0.01 + 1e-3 * static_cast<double>(i);
    all.push_back(sample(ladder(1, 128, 64, n), {1e-6, slope, 10}, 0.5, i));
    profiles.add(all.back());
  }
  const auto got = run_fit_batch(profiles.batch(), *open_executor({}));
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect_like_reference(got[i], all[i], kTolerance, std::to_string(i));
  }
}

TEST(FitBatch, NoProfilesAtAll) {
  const std::vector<std::int64_t> offsets{0};
  EXPECT_TRUE(
      run_fit_batch({.seq_lens = {}, .latencies = {}, .offsets = offsets}, *open_executor({}))
          .empty());
}

}  // namespace
}  // namespace kda::cuda
