#include "reference/predictor.hpp"

#include "tests/reference/fit_samples.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using reference::ChunkPrediction;
using reference::ChunkQuery;
using reference::ChunkSizePredictor;
using reference::Coefficients;
using reference::NoChunkReason;
using reference::predict_chunk;
using reference::profile_lengths;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Coefficients kPlain{2e-7, 0.02, 15};

double target_of(const Coefficients& f, std::int64_t base) {
  return reference::target_latency(f, base).value;
}

ChunkPrediction ask(const Coefficients& f, const ChunkQuery& query) {
  return predict_chunk(f, target_of(f, query.base_chunk_size), query);
}

void expect_none(const ChunkPrediction& got, NoChunkReason reason) {
  EXPECT_FALSE(got.chunk_size.has_value());
  ASSERT_TRUE(got.none.has_value());
  EXPECT_EQ(name(*got.none), name(reason));
}

void expect_chunk(const ChunkPrediction& got, std::int64_t chunk) {
  EXPECT_FALSE(got.none.has_value()) << name(*got.none);
  EXPECT_EQ(got.chunk_size, chunk);
}

TEST(Predict, TheRootThatDoesNotCancelGivesTheBaseBack) {
  // -B + sqrt(B^2 + 4 a T) gives 6143.999999999994 here, and alignment then 6080.
  expect_chunk(ask(kPlain, {.base_chunk_size = 6144, .context_len = 131072}), 6144);
  // As a vanishes, that form drifts to 6144.0002 at 1e-15 and 6245 at 1e-20.
  for (const double a : {1e-15, 1e-20, 1e-100, 1e-300}) {
    expect_chunk(ask({a, 0.02, 15}, {.base_chunk_size = 6144, .context_len = 131072}), 6144);
  }
  for (std::int64_t base = 64; base <= 65536; base += 64) {
    expect_chunk(ask(kPlain, {.base_chunk_size = base, .context_len = 131072}), base);
  }
}

TEST(Predict, ChunksShrinkWithHistory) {
  const auto at = [](std::int64_t history) {
    return ask(kPlain, {.history_len = history, .base_chunk_size = 8192, .context_len = 131072});
  };
  expect_chunk(at(0), 8192);
  expect_chunk(at(65536), 4864);
  expect_chunk(at(130900), 64);
}

TEST(Predict, ContextEdge) {
  const auto at = [](std::int64_t history) {
    return ask(kPlain, {.history_len = history, .base_chunk_size = 6144, .context_len = 131072});
  };
  expect_chunk(at(130908), 64);
  expect_none(at(130909), NoChunkReason::kBelowAlignment);
  expect_none(at(140000), NoChunkReason::kBelowAlignment);
}

TEST(Predict, SmoothingFloorAlignmentAndCap) {
  // Far into the prompt the root is about 1500 of 8192.
  ChunkQuery query{.history_len = 300000, .base_chunk_size = 8192, .context_len = 1 << 20};
  query.smooth_factor = 0;
  expect_chunk(ask(kPlain, query), 8192);
  query.smooth_factor = 1;
  expect_chunk(ask(kPlain, query), 2048);  // the floor, base / 4
  query.smooth_factor = 0.5;
  query.page_size = 1000;
  const auto smoothed = ask(kPlain, query);
  ASSERT_TRUE(smoothed.chunk_size.has_value());
  EXPECT_EQ(*smoothed.chunk_size % 1000, 0);
  query.max_chunk_size = 3999;
  expect_chunk(ask(kPlain, query), 3000);
  query.max_chunk_size = 999;
  expect_none(ask(kPlain, query), NoChunkReason::kBelowAlignment);
  // A page above the base lifts the chunk to one alignment unit.
  expect_chunk(ask(kPlain, {.base_chunk_size = 100, .page_size = 256, .context_len = 4096}), 256);
}

TEST(Predict, AValueNextToAnIntegerIsThatInteger) {
  // a = 1, b = 0, history 0: x = sqrt(target), no smoothing.
  const auto root_of = [](double target) {
    return predict_chunk(Coefficients{1, 0, 0}, target,
                         {.base_chunk_size = 640, .context_len = 1 << 20, .smooth_factor = 1});
  };
  expect_chunk(root_of(640.0 * 640.0), 640);
  expect_chunk(root_of((640 - 6e-7) * (640 - 6e-7)), 640);  // within 1e-9 * 640 = 6.4e-7
  expect_chunk(root_of((640 - 7e-7) * (640 - 7e-7)), 576);
}

TEST(Predict, EveryReasonInItsOrder) {
  const ChunkQuery query{.base_chunk_size = 8192, .context_len = 131072};
  expect_none(predict_chunk(std::nullopt, std::nullopt, query), NoChunkReason::kNotReady);
  expect_none(predict_chunk(std::nullopt, 100.0, query), NoChunkReason::kNotReady);
  expect_none(predict_chunk(Coefficients{-1, 0, 0}, std::nullopt, query), NoChunkReason::kNoTarget);
  for (const double a : {0.0, -2e-7, kNan}) {
    expect_none(predict_chunk(Coefficients{a, 0.02, 1}, -1e9, query), NoChunkReason::kANotPositive);
  }
  // Discriminant b^2 + 4 a T: 4e-4 + 8e-7 T is negative under T = -500.
  expect_none(predict_chunk(kPlain, -501.0, query), NoChunkReason::kDiscriminantNegative);
  expect_none(predict_chunk(kPlain, -499.0, query), NoChunkReason::kChunkNotPositive);
  expect_none(predict_chunk(kPlain, 0.0, query), NoChunkReason::kChunkNotPositive);
  expect_none(predict_chunk(Coefficients{1, 0, 0}, 0.0, query), NoChunkReason::kChunkNotPositive);
  expect_none(predict_chunk(kPlain, 100.0, {.base_chunk_size = 8192, .context_len = 163}),
              NoChunkReason::kBelowAlignment);
}

TEST(Predict, DiscriminantOfExactlyZeroHasARoot) {
  // b^2 = -4 a T = 1: the double root is -b / 2a, not positive for b > 0, positive for b < 0.
  const ChunkQuery query{.base_chunk_size = 512, .context_len = 4096, .smooth_factor = 1};
  expect_none(predict_chunk(Coefficients{1.0 / 1024, 1, 0}, -256.0, query),
              NoChunkReason::kChunkNotPositive);
  expect_chunk(predict_chunk(Coefficients{1.0 / 1024, -1, 0}, -256.0, query), 512);
}

TEST(Predict, NamesAreStable) {
  const std::array<std::string_view, 6> names{"not_ready",          "no_target",
                                              "a_not_positive",     "discriminant_negative",
                                              "chunk_not_positive", "below_alignment"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(name(static_cast<NoChunkReason>(i)), names[i]);
  }
}

TEST(Predict, NumbersThatAreNoNumbers) {
  const ChunkQuery query{.base_chunk_size = 8192, .context_len = 131072};
  expect_none(predict_chunk(Coefficients{2e-7, kNan, 0}, 100.0, query),
              NoChunkReason::kDiscriminantNegative);
  expect_none(predict_chunk(kPlain, kNan, query), NoChunkReason::kDiscriminantNegative);
  ChunkQuery smooth = query;
  smooth.smooth_factor = kNan;
  expect_none(predict_chunk(kPlain, 100.0, smooth), NoChunkReason::kChunkNotPositive);
  // c takes no part.
  EXPECT_TRUE(predict_chunk(Coefficients{2e-7, 0.02, kNan}, 100.0, query).chunk_size.has_value());
}

TEST(Predict, HugeCoefficientsDoNotOverflow) {
  // x = 1024 at any scale of the latencies.
  for (const double scale : {1e-300, 1e-150, 1.0, 1e150, 1e290}) {
    const Coefficients f{scale, scale * 100, 0};
    expect_chunk(ask(f, {.base_chunk_size = 1024, .context_len = 1 << 20}), 1024);
  }
}

TEST(Predict, AnyIntegersAreSafe) {
  const std::vector<std::int64_t> extremes{
      kMin, kMin + 1, -(std::int64_t{1} << 62), -1,       0,
      1,    64,       std::int64_t{1} << 62,    kMax - 1, kMax};
  for (const std::int64_t history : extremes) {
    for (const std::int64_t base : extremes) {
      for (const std::int64_t page : extremes) {
        for (const std::int64_t context : extremes) {
          for (const std::int64_t cap : extremes) {
            const ChunkQuery query{history, base, page, context, cap, 1.0};
            const auto got = predict_chunk(kPlain, 130.0, query);
            ASSERT_NE(got.chunk_size.has_value(), got.none.has_value());
            if (!got.chunk_size) continue;
            const std::int64_t align = reference::chunk_alignment(page);
            EXPECT_GE(*got.chunk_size, align);
            EXPECT_EQ(*got.chunk_size % align, 0);
            EXPECT_LE(*got.chunk_size, cap);
            if (history >= 0) {
              EXPECT_LE(*got.chunk_size, context);
            }
          }
        }
      }
    }
  }
  expect_none(ask(kPlain, {.history_len = std::int64_t{1} << 62,
                           .base_chunk_size = 8192,
                           .context_len = std::int64_t{1} << 62}),
              NoChunkReason::kBelowAlignment);
  expect_chunk(ask(kPlain, {.history_len = std::int64_t{1} << 62,
                            .base_chunk_size = 8192,
                            .context_len = kMax,
                            .smooth_factor = 1}),
               2048);
}

TEST(Predictor, FailedFitChangesNothing) {
  ChunkSizePredictor predictor;
  EXPECT_FALSE(predictor.coefficients().has_value());
  const Samples good = profile_6144();
  ASSERT_TRUE(predictor.fit(good.lengths, good.latencies).ok());
  ASSERT_FALSE(predictor.set_target_latency(6144).error.has_value());
  const Coefficients before = *predictor.coefficients();
  const double target = *predictor.target();
  const auto unchanged = [&] {
    return predictor.coefficients()->a == before.a && predictor.coefficients()->b == before.b &&
           predictor.coefficients()->c == before.c && predictor.target() == target;
  };

  std::vector<Samples> bad(5, good);
  bad[0].latencies.pop_back();
  bad[1] = {{1, 2, 3}, {1, 2, 3}};
  bad[2].latencies[5] = kNan;
  bad[3] = {std::vector<std::int64_t>(9, 4096), std::vector<double>(9, 100.0)};
  bad[4] = sample(good.lengths, {-2e-7, 0.02, 15});
  const std::array codes{ErrorCode::kFitLengthMismatch, ErrorCode::kFitNotEnoughPoints,
                         ErrorCode::kFitFailed, ErrorCode::kFitInsufficientRank,
                         ErrorCode::kFitANotPositive};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(predictor.fit(bad[i].lengths, bad[i].latencies).error, codes[i]);
    EXPECT_TRUE(unchanged()) << name(codes[i]);
  }
  EXPECT_TRUE(predictor.set_target_latency(0).error.has_value());
  EXPECT_TRUE(predictor.set_target_latency(-6144).error.has_value());
  EXPECT_TRUE(unchanged());
}

TEST(Predictor, LifeOfAScheduler) {
  ChunkSizePredictor predictor;
  const ChunkQuery query{.base_chunk_size = 6144, .context_len = 131072};
  expect_none(predictor.predict(query), NoChunkReason::kNotReady);
  EXPECT_EQ(predictor.set_target_latency(6144).message,
            "Calculated target_latency=0.00ms is not positive. Check warmup data quality.");
  const Samples samples = profile_6144();
  ASSERT_TRUE(predictor.fit(samples.lengths, samples.latencies).ok());
  expect_none(predictor.predict(query), NoChunkReason::kNoTarget);
  ASSERT_FALSE(predictor.set_target_latency(6144).error.has_value());
  expect_chunk(predictor.predict(query), 6144);
  // New coefficients: the old target no longer means anything.
  ASSERT_TRUE(predictor.fit(samples.lengths, samples.latencies).ok());
  expect_none(predictor.predict(query), NoChunkReason::kNoTarget);
}

TEST(Predictor, AnOutlierAtTheLargestLengthMovesTheTargetEightfold) {
  Samples samples = profile_6144();
  ChunkSizePredictor clean;
  ASSERT_TRUE(clean.fit(samples.lengths, samples.latencies).ok());
  EXPECT_NEAR(clean.set_target_latency(6144).value, 130.43, 0.01);
  samples.latencies[1] = 7234.07;
  ChunkSizePredictor poisoned;
  const auto fit = poisoned.fit(samples.lengths, samples.latencies);
  EXPECT_TRUE(fit.ok());
  ASSERT_EQ(fit.warnings.size(), 1U);
  EXPECT_GT(poisoned.set_target_latency(6144).value, 8 * 130.43);
  // The same value in first place is the cold start and is dropped.
  samples = profile_6144();
  samples.latencies[0] = 7234.07;
  ASSERT_TRUE(poisoned.fit(samples.lengths, samples.latencies).ok());
  EXPECT_NEAR(poisoned.set_target_latency(6144).value, 130.43, 0.01);
}

TEST(Profile, LengthsAsUpstreamTakesThem) {
  const auto lengths = profile_lengths(6144);
  ASSERT_EQ(lengths.size(), 128U);
  EXPECT_EQ(lengths.front(), 7680);
  EXPECT_EQ(lengths[1], 7620);
  EXPECT_EQ(lengths.back(), 60);
  // 1.25 * 103 = 128.75: step 1, and the truncated lengths run from 128 down to 1.
  EXPECT_EQ(profile_lengths(103).front(), 128);
  EXPECT_EQ(profile_lengths(103).back(), 1);
  EXPECT_EQ(profile_lengths(102), std::vector<std::int64_t>(128, 127));  // step 0
  EXPECT_TRUE(profile_lengths(0).empty());
  EXPECT_TRUE(profile_lengths(kMin).empty());
  for (std::int64_t chunk = 103; chunk < 20000; ++chunk) {
    const auto some = profile_lengths(chunk);
    ASSERT_EQ(some.size(), 128U);
    ASSERT_GE(some.back(), 1);
  }
}

TEST(Profile, RefusesLengthsBeyondADouble) {
  EXPECT_NO_THROW((void)profile_lengths(7205759403792793));
  for (const std::int64_t chunk : {std::int64_t{1} << 53, kMax}) {
    try {
      (void)profile_lengths(chunk);
      ADD_FAILURE() << chunk;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFitInputInvalid);
    }
  }
}

}  // namespace
}  // namespace kda::tests
