#include "harness/bench/counter_compare.hpp"

#include "harness/bench/bench_file.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;
using Counts = std::map<std::string, std::int64_t>;
using Key = std::pair<std::string, std::string>;  ///< kernel, place

struct CounterFile {
  std::map<Key, Counts> kernels;
  bool compiled = false;  ///< has what the compiler says of kernels
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kBenchFileInvalid, path + ": " + what);
}

const json& member(const json& object, const char* key, const std::string& path) {
  if (!object.is_object() || !object.contains(key))
    refuse(path, fmt::format("expected a member '{}', got {}", key, brief(object)));
  return object.at(key);
}

std::string word(const json& object, const char* key, const std::string& path) {
  const json& value = member(object, key, path);
  if (!value.is_string()) refuse(path, fmt::format("{}: expected text, got {}", key, brief(value)));
  return value.get<std::string>();
}

const json& list(const json& object, const char* key, const std::string& path) {
  const json& value = member(object, key, path);
  if (!value.is_array())
    refuse(path, fmt::format("{}: expected a list, got {}", key, value.type_name()));
  return value;
}

/// The whole numbers of an object; what else is in it is derived or a name.
Counts whole_numbers(const json& object, const std::string& path) {
  if (!object.is_object()) refuse(path, "expected counters, got " + brief(object));
  Counts counts;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_number()) continue;
    // What is 2^63 and above comes out negative.
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
      refuse(path, fmt::format("{}: expected a whole number, got {}", key, brief(value)));
    counts[key] = value.get<std::int64_t>();
  }
  return counts;
}

/// Two of one name could not be told apart.
void add(CounterFile& file, const Key& key, Counts counts, const std::string& path) {
  if (!file.kernels.emplace(key, std::move(counts)).second)
    refuse(path, key.first + " (" + key.second + "): is there twice");
}

void add_case(CounterFile& file, const json& entry, const std::string& path) {
  const std::string implementation = word(entry, "implementation", path);
  const std::string place = word(entry, "case", path);
  add(file, {implementation, place}, whole_numbers(member(entry, "total", path), path), path);
  int number = 0;
  for (const json& launch : list(entry, "launches", path)) {
    const std::string where = fmt::format("{}, launch {}", place, ++number);
    Counts counts = whole_numbers(member(launch, "counters", path), path);
    for (const char* extent : {"grid", "block"}) {
      int axis = 0;
      for (const json& e : list(launch, extent, path)) {
        if (!e.is_number_integer()) refuse(path, std::string(extent) + ": expected numbers");
        counts[fmt::format("{}.{}", extent, "xyz"[std::min(axis++, 2)])] = e.get<std::int64_t>();
      }
    }
    const std::string kernel = implementation + ": " + word(launch, "kernel", path);
    add(file, {kernel, where}, std::move(counts), path);
  }
}

CounterFile read_counters(const json& parsed, const std::string& path) {
  const std::string format = word(parsed, "format", path);
  if (format != kCounterFormat)
    refuse(path, fmt::format("format: expected {}, got {}", kCounterFormat, format));
  const json& version = member(parsed, "version", path);
  if (version != kCounterVersion)
    refuse(path, fmt::format("version: expected {}, got {}", kCounterVersion, brief(version)));
  CounterFile file;
  for (const json& entry : list(parsed, "cases", path)) add_case(file, entry, path);
  for (const json& entry : list(parsed, "kernels", path)) {
    file.compiled = true;
    add(file, {word(entry, "kernel", path), word(entry, "arch", path)}, whole_numbers(entry, path),
        path);
  }
  return file;
}

bool is_shape(const std::string& counter) {
  return counter.starts_with("grid.") || counter.starts_with("block.") || counter == "threads";
}

CountVerdict judge(const std::string& counter, std::int64_t a, std::int64_t b) {
  if (a == b) return CountVerdict::kSame;
  if (is_shape(counter)) return CountVerdict::kNone;
  const bool more_is_worse = counter != "blocks_per_sm";
  return (b > a) == more_is_worse ? CountVerdict::kGrew : CountVerdict::kFewer;
}

std::optional<std::int64_t> value_in(const Counts& counts, const std::string& counter) {
  const auto found = counts.find(counter);
  return found == counts.end() ? std::nullopt : std::optional(found->second);
}

void compare_kernel(CountComparison& comparison, const Key& key, const Counts& a, const Counts& b) {
  Counts all = a;
  all.insert(b.begin(), b.end());
  for (const auto& [counter, ignored] : all) {
    CountLine line{.kernel = key.first,
                   .place = key.second,
                   .counter = counter,
                   .base = value_in(a, counter),
                   .changed = value_in(b, counter),
                   .reason = {}};
    if (!line.base || !line.changed) {
      line.reason = line.base ? "only in BASE" : "only in NEW";
    } else {
      line.verdict = judge(counter, *line.base, *line.changed);
      if (line.verdict == CountVerdict::kNone) line.reason = "launched in another shape";
    }
    if (line.verdict == CountVerdict::kSame) {
      ++comparison.same;
    } else {
      comparison.lines.push_back(std::move(line));
    }
  }
}

void add_one_sided(CountComparison& comparison, const Key& key, const char* reason) {
  comparison.lines.push_back({.kernel = key.first,
                              .place = key.second,
                              .counter = {},
                              .base = {},
                              .changed = {},
                              .reason = reason});
}

}  // namespace

std::string_view name(CountVerdict verdict) noexcept {
  switch (verdict) {
    case CountVerdict::kGrew: return "grew";
    case CountVerdict::kFewer: return "fewer";
    case CountVerdict::kSame: return "same";
    case CountVerdict::kNone: return "no verdict";
  }
  return "?";
}

std::size_t CountComparison::count(CountVerdict verdict) const {
  if (verdict == CountVerdict::kSame) return same;
  return static_cast<std::size_t>(std::ranges::count(lines, verdict, &CountLine::verdict));
}

Exit CountComparison::exit_status() const {
  if (count(CountVerdict::kGrew) != 0) return Exit::kFailed;
  return same + count(CountVerdict::kFewer) == 0 ? Exit::kUnavailable : Exit::kSuccess;
}

CountComparison compare_counters(const json& base, const json& changed,
                                 const std::string& base_path, const std::string& new_path) {
  const CounterFile a = read_counters(base, base_path);
  const CounterFile b = read_counters(changed, new_path);
  CountComparison comparison;
  comparison.base = base_path;
  comparison.changed = new_path;
  if (a.compiled != b.compiled) {
    comparison.notes.push_back((a.compiled ? new_path : base_path) +
                               ": says nothing of registers (made without nvcc)");
  }
  for (const auto& [key, counts] : a.kernels) {
    const auto other = b.kernels.find(key);
    if (other == b.kernels.end()) {
      add_one_sided(comparison, key, "only in BASE");
    } else {
      compare_kernel(comparison, key, counts, other->second);
    }
  }
  for (const auto& [key, counts] : b.kernels)
    if (!a.kernels.contains(key)) add_one_sided(comparison, key, "only in NEW");
  return comparison;
}

std::string to_text(const CountComparison& comparison) {
  std::string text = fmt::format("base {}\nnew  {}\n", comparison.base, comparison.changed);
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  for (const CountVerdict verdict :
       {CountVerdict::kFewer, CountVerdict::kNone, CountVerdict::kGrew}) {
    for (const CountLine& line : comparison.lines) {
      if (line.verdict != verdict) continue;
      text += fmt::format("{:<10}  {} ({})", name(verdict), line.kernel, line.place);
      if (!line.counter.empty()) text += fmt::format("  {}", line.counter);
      if (line.base && line.changed) text += fmt::format(": {} -> {}", *line.base, *line.changed);
      text += (line.reason.empty() ? "" : "  " + line.reason) + "\n";
    }
  }
  return text + fmt::format("{} counters: {} fewer, {} same, {} no verdict, {} grew\n",
                            comparison.lines.size() + comparison.same,
                            comparison.count(CountVerdict::kFewer), comparison.same,
                            comparison.count(CountVerdict::kNone),
                            comparison.count(CountVerdict::kGrew));
}

json to_json(const CountComparison& comparison) {
  json counts;
  for (const CountVerdict verdict :
       {CountVerdict::kGrew, CountVerdict::kFewer, CountVerdict::kSame, CountVerdict::kNone})
    counts[std::string(name(verdict))] = comparison.count(verdict);
  json lines = json::array();
  for (const CountLine& line : comparison.lines) {
    lines.push_back({{"kernel", line.kernel},
                     {"case", line.place},
                     {"counter", line.counter},
                     {"base", line.base ? json(*line.base) : json(nullptr)},
                     {"new", line.changed ? json(*line.changed) : json(nullptr)},
                     {"verdict", name(line.verdict)},
                     {"reason", line.reason}});
  }
  return {{"format", "kdacheck-bench-comparison"},
          {"version", 1},
          {"kind", "counters"},
          {"base", comparison.base},
          {"new", comparison.changed},
          {"notes", comparison.notes},
          {"counts", counts},
          {"lines", lines}};
}

}  // namespace kda::harness
