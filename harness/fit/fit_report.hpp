#pragma once

#include "harness/fit/fit_input.hpp"
#include "harness/fit/fit_schedule.hpp"
#include "reference/fit.hpp"
#include "reference/fit_diagnostics.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kda::harness {

/// All that `kdacheck fit` found, for the text, the JSON and the plot.
struct FitReport {
  std::string source;
  LatencySamples samples;
  reference::FitResult fit;
  reference::DiagnosticsOptions options;
  reference::Diagnostics diagnostics;
  std::optional<std::int64_t> base_chunk_size;
  std::optional<reference::TargetLatency> target;
  std::optional<ScheduleQuery> query;  ///< of the schedule
  std::vector<ScheduleStep> schedule;
};

/// Coefficients with intervals, quality, target, warnings and the schedule; lines of at most 100
/// characters but for messages.
[[nodiscard]] std::string to_text(const FitReport& report);

/// Format "kdacheck-fit", version 1. parse_samples reads its samples back; numbers that JSON does
/// not have (a first latency of nan) are null in it.
[[nodiscard]] nlohmann::json to_json(const FitReport& report);

}  // namespace kda::harness
