#include "harness/bench/bench_text.hpp"

#include "harness/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace kda::harness {
namespace {

std::string counter_text(const BenchLine& line, const char* key) {
  const auto found = line.counters.find(key);
  if (found == line.counters.end()) return "-";
  const double value = found->second;
  if (std::string_view(key) == "floor_s") return seconds_text(value);
  if (std::string_view(key) == "fraction") {
    return fmt::format("{:.3f}{}", value, value > 1 ? "  impossible: a cache, or a bug" : "");
  }
  return fmt::format("{:.3g}", value);
}

std::string line_text(const BenchLine& line, std::size_t width) {
  const double middle = median(line.seconds);
  const double band =
      line.seconds.size() > 1 ? std::expm1(median_band(line.seconds)) : std::nan("");
  return fmt::format("{:<{}}  {:>10}  {}  {:>9}  {:>10}  {}\n", line.name, width,
                     seconds_text(middle),
                     std::isnan(band) ? "     -" : fmt::format("{:>5.1f}%", 100 * band),
                     counter_text(line, "tokens/s"), counter_text(line, "floor_s"),
                     counter_text(line, "fraction"));
}

}  // namespace

std::string seconds_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.4g} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} s", seconds);
}

std::size_t count_failed(const BenchFile& file) {
  return static_cast<std::size_t>(std::ranges::count(file.lines, true, &BenchLine::failed));
}

std::string to_text(const BenchFile& file) {
  std::size_t width = 9;
  std::map<std::string, int> skipped;
  for (const BenchLine& line : file.lines) {
    if (line.problem.empty()) width = std::max(width, line.name.size());
    if (line.skipped) ++skipped[line.problem];
  }
  std::string text = fmt::format("{:<{}}  {:>10}  {}  {:>9}  {:>10}  {}\n", "benchmark", width,
                                 "median", "  band", "tokens/s", "floor", "fraction");
  std::map<std::string, const BenchLine*> by_name;  // they were run in a random order
  for (const BenchLine& line : file.lines)
    if (line.problem.empty()) by_name[line.name] = &line;
  for (const auto& [name, line] : by_name) text += line_text(*line, width);
  for (const auto& [reason, count] : skipped)
    text += fmt::format("skipped {} benchmarks: {}\n", count, reason);
  for (const BenchLine& line : file.lines) {
    if (!line.problem.empty() && !line.skipped)
      text += fmt::format("ERROR  {}: {}\n", line.name, line.problem);
  }
  return text;
}

}  // namespace kda::harness
