#include "harness/fit/fit_schedule.hpp"

#include "reference/types/error.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using harness::make_schedule;
using harness::ScheduleQuery;
using harness::ScheduleStep;
using reference::Coefficients;
using reference::NoChunkReason;

constexpr Coefficients kPlain{2e-7, 0.02, 15};

std::vector<ScheduleStep> schedule(const Coefficients& f, const ScheduleQuery& query) {
  return make_schedule(f, reference::target_latency(f, query.base_chunk_size).value, query);
}

std::int64_t sum(const std::vector<ScheduleStep>& steps) {
  return std::accumulate(steps.begin(), steps.end(), std::int64_t{0},
                         [](std::int64_t total, const ScheduleStep& s) { return total + s.chunk; });
}

/// Ends, sums to the prompt, aligned but for the last, none under base / 4 before alignment.
void check(const Coefficients& f, const ScheduleQuery& query) {
  const auto steps = schedule(f, query);
  ASSERT_FALSE(steps.empty());
  ASSERT_EQ(sum(steps), query.prompt_len);
  const std::int64_t align = reference::chunk_alignment(query.page_size);
  // A chunk of at least base / 4 before alignment is at least that, aligned down, after it.
  const std::int64_t floor = std::max(query.base_chunk_size / 4 / align * align, align);
  std::int64_t history = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ASSERT_EQ(steps[i].history, history);
    history += steps[i].chunk;
    const bool last = i + 1 == steps.size();
    ASSERT_FALSE(steps[i].tail && !last);
    if (last) continue;
    ASSERT_EQ(steps[i].chunk % align, 0);
    const std::int64_t room = query.context_len - steps[i].history - 100;
    ASSERT_GE(steps[i].chunk, std::min(floor, room / align * align)) << "at " << history;
  }
}

TEST(FitSchedule, AlwaysEndsAlignedAndAboveTheFloor) {
  const std::vector<Coefficients> models{
      kPlain, {1e-9, 0.02, 15}, {1e-5, 0.001, 1}, {3e-6, 0, 0}, {1e-15, 0.1, 0}};
  for (std::int64_t base = 512; base <= 16384; base *= 2) {
    for (const std::int64_t odd : {base, base + base / 2, base + 37}) {
      for (const double smooth : {0.0, 0.65, 0.75, 1.0}) {
        for (const std::int64_t page : {1, 64, 128}) {
          for (const std::int64_t prompt : {1, 63, 64, 1000, 16384, 100001, 131072}) {
            for (const Coefficients& f : models) {
              check(f, {.prompt_len = prompt,
                        .base_chunk_size = odd,
                        .page_size = page,
                        .context_len = 131072,
                        .smooth_factor = smooth});
            }
          }
        }
      }
    }
  }
}

TEST(FitSchedule, ChunksShrinkAndTheTailIsMarked) {
  const auto steps =
      schedule(kPlain, {.prompt_len = 100000, .base_chunk_size = 8192, .context_len = 131072});
  EXPECT_EQ(steps.front().chunk, 8192);
  EXPECT_LT(steps[steps.size() - 2].chunk, 6000);
  EXPECT_TRUE(steps.back().tail);
  EXPECT_NEAR(steps.front().latency, reference::target_latency(kPlain, 8192).value, 1e-9);
  double total = 0;
  for (const ScheduleStep& step : steps) {
    EXPECT_FALSE(step.fallback.has_value());
    total += step.latency;
  }
  EXPECT_NEAR(total, kPlain(100000) - kPlain(0), 1e-6);
}

TEST(FitSchedule, APromptOfWholeChunksHasNoTail) {
  const auto steps = schedule(
      kPlain,
      {.prompt_len = 3 * 4096, .base_chunk_size = 4096, .context_len = 131072, .smooth_factor = 0});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_FALSE(steps.back().tail);
}

TEST(FitSchedule, AtTheEndOfTheContextTheStaticSizeTakesOver) {
  const auto steps =
      schedule(kPlain, {.prompt_len = 4096, .base_chunk_size = 4096, .context_len = 4096});
  EXPECT_EQ(sum(steps), 4096);
  ASSERT_TRUE(steps.back().fallback.has_value());
  EXPECT_EQ(*steps.back().fallback, NoChunkReason::kBelowAlignment);
  EXPECT_EQ(steps.front().chunk, 3968);  // 4096 - 100, aligned down
}

TEST(FitSchedule, NoAnswerAtAllGoesOnWithTheStaticSize) {
  const auto steps = make_schedule(
      {0, 0.02, 1}, 100, {.prompt_len = 10000, .base_chunk_size = 4100, .context_len = 131072});
  ASSERT_EQ(steps.size(), 3U);
  for (const ScheduleStep& step : steps) EXPECT_EQ(step.fallback, NoChunkReason::kANotPositive);
  EXPECT_EQ(steps[0].chunk, 4096);
  const auto capped = make_schedule(
      kPlain, 100,
      {.prompt_len = 100, .base_chunk_size = 4096, .context_len = 131072, .max_chunk_size = 50});
  ASSERT_EQ(capped.size(), 2U);
  EXPECT_EQ(capped[0].chunk, 50);
}

TEST(FitSchedule, RefusesWhatCannotEnd) {
  const auto refused = [](const ScheduleQuery& query) {
    try {
      (void)make_schedule(kPlain, 100, query);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kUsage;
    }
    return false;
  };
  EXPECT_TRUE(refused({.prompt_len = 0, .base_chunk_size = 64, .context_len = 1000}));
  EXPECT_TRUE(refused({.prompt_len = 10, .base_chunk_size = 0, .context_len = 1000}));
  EXPECT_TRUE(refused({.prompt_len = 1001, .base_chunk_size = 64, .context_len = 1000}));
  EXPECT_TRUE(
      refused({.prompt_len = 10, .base_chunk_size = 64, .context_len = 1000, .max_chunk_size = 0}));
  EXPECT_TRUE(refused({.prompt_len = std::int64_t{1} << 60,
                       .base_chunk_size = 64,
                       .context_len = std::int64_t{1} << 61}));
}

}  // namespace
}  // namespace kda::tests
