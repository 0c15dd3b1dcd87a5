#include "harness/report/report.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

nlohmann::json to_json(const CaseResult& result) {
  nlohmann::json json{
      {"item", result.item},
      {"name", result.case_name},
      {"op", result.op},
      {"implementation", result.implementation},
      {"verdict", name(result.verdict)},
      {"seconds", result.seconds},
      {"command", result.command},
  };
  const auto add = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  add("file", result.file);
  add("tags", result.tags);
  add("case", result.line);
  add("code", result.code);
  add("detail", result.detail);
  add("output", result.output);
  add("known_failure", result.known);
  add("oracle", result.oracle);
  add("policy", result.policy);
  add("diagnosis", result.diagnosis);
  add("capsule", result.capsule);
  if (!result.unprobed.empty()) json["unprobed"] = result.unprobed;
  if (!result.skipped_probes.empty()) json["skipped_probes"] = result.skipped_probes;
  if (result.comparison && !result.comparison->formats.empty())
    json["formats"] = result.comparison->formats;
  if (result.comparison) json["tensors"] = kda::harness::to_json(*result.comparison).at("tensors");
  return json;
}

nlohmann::json to_json(const RunBias& bias) {
  return {{"implementation", bias.implementation},
          {"cases", bias.cases},
          {"mean", bias.mean},
          {"t", std::isfinite(bias.t) ? nlohmann::json(bias.t)
                                      : nlohmann::json(bias.t < 0 ? "-inf" : "inf")},
          {"passed", !bias.failed}};
}

nlohmann::json to_json(const RunOrigin& origin) {
  return {{"index", origin.shard_index},
          {"count", origin.shard_count},
          {"items", origin.items},
          {"inputs", origin.inputs}};
}

nlohmann::json to_json(const KnownFailure& entry) {
  return {{"implementation", entry.implementation},
          {"case", entry.test_case},
          {"code", entry.code},
          {"reason", entry.reason},
          {"expires", entry.expires},
          {"expired", entry.expired},
          {"excused", entry.excused},
          {"failed", entry.failed},
          {"passed", entry.passed}};
}

template <class T>
nlohmann::json list_of(const std::vector<T>& items) {
  nlohmann::json list = nlohmann::json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

/// All but the results.
nlohmann::json head_of(const RunReport& report, const nlohmann::json& environment) {
  nlohmann::json counts;
  for (std::uint8_t i = 0; i < kVerdictCount; ++i)
    counts[std::string(name(static_cast<Verdict>(i)))] = report.counts[i];
  return {{"format", kReportFormat},
          {"version", kReportVersion},
          {"environment", environment},
          {"shard", to_json(report.origin)},
          {"options", report.origin.options},
          {"implementations", report.asked},
          {"known_failures", list_of(report.known_failures)},
          {"cases", report.cases},
          {"required", report.required()},
          {"run", report.compared()},
          {"counts", counts},
          {"halves", report.halves},
          {"idle", report.idle},
          {"notes", report.notes},
          {"input_errors", report.input_errors},
          {"bias", list_of(report.biases)},
          {"interrupted", report.interrupted},
          {"stopped", report.stopped},
          {"not_run", report.not_run},
          {"seconds", report.seconds},
          {"results", nlohmann::json::array()}};
}

std::string dumped(const nlohmann::json& json) {
  std::string text = to_file_text(json);
  text.pop_back();  // the line break
  return text;
}

/// An element of a list that is a member of the whole: two levels deeper.
void append_deeper(std::string& text, const std::string& lines) {
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = lines.find('\n', begin);
    text.append("  ").append(lines, begin, end == std::string::npos ? end : end + 1 - begin);
  }
}

}  // namespace

nlohmann::json to_json(const RunReport& report) { return to_json(report, environment()); }

nlohmann::json to_json(const RunReport& report, const nlohmann::json& environment) {
  nlohmann::json whole = head_of(report, environment);
  whole["results"] = list_of(report.results);
  return whole;
}

std::string to_file_text(const RunReport& report, const nlohmann::json& environment) {
  std::string text = dumped(head_of(report, environment)) + "\n";
  if (report.results.empty()) return text;
  constexpr std::string_view kNone = "\n \"results\": []";
  const std::size_t place = text.find(kNone) + kNone.size() - 1;  // strings hold no line breaks
  const std::string rest = text.substr(place);
  text.resize(place);
  const char* separator = "\n";
  for (const CaseResult& result : report.results) {
    text += separator;
    append_deeper(text, dumped(to_json(result)));
    separator = ",\n";
  }
  return text + "\n " + rest;
}

}  // namespace kda::harness
