#include "harness/bench/bench_compare.hpp"
#include "harness/bench/bench_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

constexpr std::array kVerdicts{SpeedVerdict::kFaster, SpeedVerdict::kSame, SpeedVerdict::kNone,
                               SpeedVerdict::kSlower};

std::string text_or_dash(const std::optional<double>& seconds) {
  return seconds ? seconds_text(*seconds) : "-";
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::string line_text(const SpeedLine& line, std::size_t width) {
  std::string text =
      fmt::format("{:<10}  {:<{}}  {:>10} {:>10}", name(line.verdict), line.name, width,
                  text_or_dash(line.base_median), text_or_dash(line.new_median));
  text += line.ratio ? fmt::format(" {:>7.3f}", *line.ratio) : fmt::format(" {:>7}", "-");
  text += line.p ? fmt::format("  {:>8.2g}", *line.p) : fmt::format("  {:>8}", "-");
  text += line.band ? fmt::format("  {:>5.1f}%", 100 * std::expm1(*line.band))
                    : fmt::format("  {:>6}", "-");
  return text + (line.reason.empty() ? "" : "  " + line.reason) + "\n";
}

}  // namespace

std::string to_text(const SpeedComparison& comparison) {
  std::string text =
      fmt::format("base {}\nnew  {}\nband from {}: {}\n", comparison.base, comparison.changed,
                  comparison.band_source == "A/A run" ? "an A/A run" : "the repetitions",
                  "what equal programs differ by here");
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  std::size_t width = 4;
  for (const SpeedLine& line : comparison.lines) width = std::max(width, line.name.size());
  text += fmt::format("{:<10}  {:<{}}  {:>10} {:>10} {:>7}  {:>8}  {:>6}\n", "verdict", "line",
                      width, "base", "new", "ratio", "p", "band");
  for (const SpeedVerdict verdict : kVerdicts) {
    for (const SpeedLine& line : comparison.lines)
      if (line.verdict == verdict) text += line_text(line, width);
  }
  text += fmt::format("{} lines:", comparison.lines.size());
  for (const SpeedVerdict verdict : kVerdicts) {
    text += fmt::format("{} {} {}", verdict == kVerdicts.front() ? "" : ",",
                        comparison.count(verdict), name(verdict));
  }
  const auto broken = std::ranges::count(comparison.lines, true, &SpeedLine::broke);
  return text + (broken == 0 ? "\n" : fmt::format("; {} end in an error now\n", broken));
}

nlohmann::json to_json(const SpeedComparison& comparison) {
  nlohmann::json counts;
  for (const SpeedVerdict verdict : kVerdicts)
    counts[std::string(name(verdict))] = comparison.count(verdict);
  nlohmann::json lines = nlohmann::json::array();
  for (const SpeedLine& line : comparison.lines) {
    lines.push_back({{"name", line.name},
                     {"verdict", name(line.verdict)},
                     {"reason", line.reason},
                     {"base_median_s", or_null(line.base_median)},
                     {"new_median_s", or_null(line.new_median)},
                     {"ratio", or_null(line.ratio)},
                     {"p", or_null(line.p)},
                     {"band", or_null(line.band)},
                     {"band_source", comparison.band_source},
                     {"base_repetitions", line.base_repetitions},
                     {"new_repetitions", line.new_repetitions}});
  }
  return {{"format", "kdacheck-bench-comparison"},
          {"version", 1},
          {"kind", "times"},
          {"base", comparison.base},
          {"new", comparison.changed},
          {"notes", comparison.notes},
          {"counts", counts},
          {"lines", lines}};
}

}  // namespace kda::harness
