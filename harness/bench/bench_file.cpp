#include "harness/bench/bench_file.hpp"

#include "harness/bench/statistics.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kBenchFileInvalid, path + ": " + what);
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> unit_seconds(std::string_view unit) {
  if (unit == "ns" || unit.empty()) return 1e-9;  // Google Benchmark's default
  if (unit == "us") return 1e-6;
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1.0;
  return std::nullopt;
}

constexpr std::string_view kSkipped = "skipped: ";

/// Numbers that the benchmark itself reported.
std::map<std::string, double> counters_of(const json& entry) {
  constexpr std::string_view kOwn[] = {"family_index", "per_family_instance_index",
                                       "repetitions",  "repetition_index",
                                       "threads",      "iterations",
                                       "real_time",    "cpu_time"};
  std::map<std::string, double> counters;
  for (const auto& [key, value] : entry.items()) {
    if (value.is_number() && std::ranges::find(kOwn, key) == std::end(kOwn))
      counters[key] = value.get<double>();
  }
  return counters;
}

/// Values of each counter of a line, one a repetition.
using CounterValues = std::map<std::string, std::vector<double>>;

void add_repetition(BenchLine& line, CounterValues& values, const json& entry, Metric metric) {
  if (const auto error = entry.find("error_occurred"); error != entry.end() && *error == true) {
    line.problem = text(entry, "error_message");
    if (line.problem.empty()) line.problem = "an error without a message";
    line.skipped = line.problem.starts_with(kSkipped);
    line.failed = !line.skipped;
    if (line.skipped) line.problem.erase(0, kSkipped.size());
    return;
  }
  const char* key = metric == Metric::kRealTime ? "real_time" : "cpu_time";
  const auto unit = unit_seconds(text(entry, "time_unit"));
  const auto time = entry.find(key);
  const std::size_t repetition = line.seconds.size();
  if (!unit) {
    line.problem = "time_unit '" + text(entry, "time_unit") + "' is not known";
  } else if (time == entry.end() || !time->is_number()) {
    line.problem = fmt::format("{} of repetition {} is no number", key, repetition);
  } else if (const double t = time->get<double>() * *unit; !(t > 0) || std::isinf(t)) {
    line.problem = fmt::format("{} of repetition {} is {}, not a positive time", key, repetition,
                               time->dump());
  } else {
    line.seconds.push_back(t);
    for (const auto& [counter, value] : counters_of(entry)) values[counter].push_back(value);
  }
}

/// Everything but aggregates, which are made from what is here.
void add_entry(BenchFile& file, std::map<std::string, CounterValues>& values, const json& entry,
               Metric metric) {
  if (!entry.is_object()) refuse(file.path, "benchmarks: expected objects, got " + brief(entry));
  if (text(entry, "run_type") == "aggregate") return;
  std::string name = text(entry, "run_name");
  if (name.empty()) name = text(entry, "name");
  if (name.empty()) refuse(file.path, "benchmarks: expected entries with a name, got one without");
  auto line = std::ranges::find(file.lines, name, &BenchLine::name);
  if (line == file.lines.end()) {
    file.lines.push_back({});
    line = file.lines.end() - 1;
    line->name = name;
  }
  if (line->problem.empty()) add_repetition(*line, values[name], entry, metric);
}

void read_context(BenchFile& file, const json& context) {
  for (const auto& [key, value] : context.items()) {
    if (value.is_string()) {
      file.context[key] = value.get<std::string>();
    } else if (value.is_primitive()) {
      file.context[key] = value.dump();
    }
  }
  const auto version = file.context.find("kdacheck_bench");
  if (version != file.context.end() && version->second != kBenchVersion) {
    refuse(file.path, fmt::format("kdacheck_bench: expected version {}, got {}", kBenchVersion,
                                  version->second));
  }
}

}  // namespace

const BenchLine* BenchFile::find(const std::string& name) const {
  const auto found = std::ranges::find(lines, name, &BenchLine::name);
  return found == lines.end() ? nullptr : &*found;
}

std::string BenchFile::context_or(const std::string& key, const std::string& otherwise) const {
  const auto found = context.find(key);
  return found == context.end() ? otherwise : found->second;
}

std::string brief(const json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return value.dump().substr(0, 60);
}

json read_json(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) {
    throw Error(ErrorCode::kPathNotFound, file.string() + ": cannot be read");
  }
  json parsed = json::parse(in, nullptr, false);
  if (parsed.is_discarded()) refuse(file.string(), "expected JSON, got something else");
  return parsed;
}

BenchFile parse_bench_file(const json& parsed, const std::string& path, Metric metric) {
  BenchFile file;
  file.path = path;
  const auto wanted = "expected Google Benchmark's JSON with context and benchmarks, got ";
  if (!parsed.is_object()) refuse(path, wanted + std::string(parsed.type_name()));
  const std::string format = text(parsed, "format");
  if (!format.empty()) refuse(path, wanted + std::string("format '") + format + "'");
  const auto context = parsed.find("context");
  const auto benchmarks = parsed.find("benchmarks");
  if (context == parsed.end() || !context->is_object() || benchmarks == parsed.end() ||
      !benchmarks->is_array()) {
    refuse(path, wanted + std::string("an object without them"));
  }
  read_context(file, *context);
  std::map<std::string, CounterValues> values;
  for (const json& entry : *benchmarks) add_entry(file, values, entry, metric);
  for (BenchLine& line : file.lines)
    for (const auto& [counter, list] : values[line.name]) line.counters[counter] = median(list);
  return file;
}

}  // namespace kda::harness
