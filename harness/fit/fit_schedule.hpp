#pragma once

#include "reference/predictor.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kda::harness {

/// A prompt to be prefilled in chunks. All in tokens.
struct ScheduleQuery {
  std::int64_t prompt_len = 0;
  std::int64_t base_chunk_size = 0;
  std::int64_t page_size = 64;
  std::int64_t context_len = 0;
  std::optional<std::int64_t> max_chunk_size = std::nullopt;
  double smooth_factor = 0.75;
};

struct ScheduleStep {
  std::int64_t history = 0;  ///< tokens done before this chunk
  std::int64_t chunk = 0;
  double latency = 0;  ///< f(history + chunk) - f(history), ms
  bool tail = false;   ///< cut to what was left of the prompt
  /// Set when the predictor had no answer: the chunk is the static one then.
  std::optional<reference::NoChunkReason> fallback;
};

/// The chunks that a scheduler would run, until their sum is the prompt. Where the predictor has no
/// answer it goes on with the static size, as SGLang does: the base, aligned down to at least one
/// alignment unit, not above max_chunk_size. Every chunk but the last is aligned, unless
/// max_chunk_size is under one unit.
///
/// Throws kUsage when prompt or base is not positive, max_chunk_size is given but not positive, the
/// prompt is longer than the context, or it takes more than a million chunks.
[[nodiscard]] std::vector<ScheduleStep> make_schedule(const reference::Coefficients& f,
                                                      double target_latency,
                                                      const ScheduleQuery& query);

}  // namespace kda::harness
