#include "harness/fit/fit_schedule.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr std::size_t kMostChunks = 1'000'000;

void require(bool holds, const char* what, std::int64_t got) {
  if (!holds) throw Error(ErrorCode::kUsage, fmt::format("schedule: wanted {}, got {}", what, got));
}

std::int64_t static_chunk(const ScheduleQuery& query) {
  const std::int64_t align = reference::chunk_alignment(query.page_size);
  const std::int64_t aligned = std::max(query.base_chunk_size / align * align, align);
  return std::min(aligned, query.max_chunk_size.value_or(aligned));
}

}  // namespace

std::vector<ScheduleStep> make_schedule(const reference::Coefficients& f, double target_latency,
                                        const ScheduleQuery& query) {
  require(query.prompt_len > 0, "a prompt of at least 1 token", query.prompt_len);
  require(query.base_chunk_size > 0, "a base chunk size of at least 1", query.base_chunk_size);
  require(query.prompt_len <= query.context_len, "a prompt that fits the context",
          query.prompt_len);
  require(query.max_chunk_size.value_or(1) > 0, "a largest chunk size of at least 1",
          query.max_chunk_size.value_or(1));

  std::vector<ScheduleStep> steps;
  for (std::int64_t history = 0; history < query.prompt_len; history += steps.back().chunk) {
    require(steps.size() < kMostChunks, "at most a million chunks for a prompt", query.prompt_len);
    const auto prediction = predict_chunk(f, target_latency,
                                          {.history_len = history,
                                           .base_chunk_size = query.base_chunk_size,
                                           .page_size = query.page_size,
                                           .context_len = query.context_len,
                                           .max_chunk_size = query.max_chunk_size,
                                           .smooth_factor = query.smooth_factor});
    const std::int64_t wanted =
        prediction.chunk_size ? *prediction.chunk_size : static_chunk(query);
    ScheduleStep step;
    step.history = history;
    step.chunk = std::min(wanted, query.prompt_len - history);
    step.latency = chunk_latency(f, history, step.chunk);
    step.tail = step.chunk < wanted;
    step.fallback = prediction.none;
    steps.push_back(step);
  }
  return steps;
}

}  // namespace kda::harness
