#include "harness/compare/json_integer.hpp"
#include "harness/report/report.hpp"
#include "harness/version.hpp"
#include "reference/types/error.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

// What report_json.cpp writes, read back.

namespace kda::harness {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::filesystem::path& file, ErrorCode code, const std::string& what) {
  throw Error(code, file.string() + ": " + what);
}

std::string text_of(const std::filesystem::path& file) {
  const auto unreadable = [&file](int error) {
    fail(file, ErrorCode::kFileUnreadable,
         std::string("wanted a report: ") + std::strerror(error != 0 ? error : EIO));
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) unreadable(EISDIR);
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) unreadable(errno);
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) unreadable(errno);
  return std::move(text).str();
}

json parsed(const std::filesystem::path& file) {
  const std::string text = text_of(file);
  // Reports are renamed into place when they are whole; copies of them are not.
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    fail(file, ErrorCode::kReportTruncated, "wanted a report, got an empty file");
  // Reports are flat; a file may nest deeper than the stack holds, and printing recurses.
  constexpr int kMostNested = 32;
  const auto bounded = [&file](int depth, json::parse_event_t, const json&) {
    if (depth > kMostNested)
      fail(file, ErrorCode::kReportUnknown, "wanted a report, got JSON nested beyond 32 levels");
    return true;
  };
  try {
    return json::parse(text, bounded);
  } catch (const json::parse_error& error) {
    if (error.byte > text.size() && text.front() == '{') {
      fail(file, ErrorCode::kReportTruncated,
           fmt::format("wanted the end of the report, got the end of the file after {} bytes",
                       text.size()));
    }
    // Not what(), which quotes bytes of a file that may hold anything.
    fail(file, ErrorCode::kReportUnknown,
         fmt::format("wanted JSON, got something else at byte {}", error.byte));
  } catch (const json::out_of_range&) {
    fail(file, ErrorCode::kReportUnknown, "wanted numbers that f64 holds, got a larger one");
  }
}

void require_format(const std::filesystem::path& file, const json& top) {
  if (!top.is_object() || top.value("format", json()) != kReportFormat) {
    fail(file, ErrorCode::kReportUnknown,
         fmt::format("wanted format \"{}\", got {}", kReportFormat,
                     top.is_object() && top.contains("format") ? top["format"].dump() : "none"));
  }
  const std::string version =
      top.contains("environment") && top["environment"].is_object()
          ? top["environment"].value("kdacheck", json("an unknown version")).dump()
          : "none";
  if (top.value("version", json()) != kReportVersion || version != json(kVersion).dump()) {
    fail(file, ErrorCode::kShardVersion,
         fmt::format("wanted a report of version {} by kdacheck {}, got version {} by {}",
                     kReportVersion, kVersion, top.value("version", json("none")).dump(), version));
  }
}

CaseResult read_result(const json& object) {
  const auto text = [&object](const char* key) { return object.value(key, std::string()); };
  CaseResult result;
  result.item = integer(object, "item");
  result.case_name = object.at("name").get<std::string>();
  result.file = text("file");
  result.line = text("case");
  result.op = object.at("op").get<std::string>();
  result.tags = text("tags");
  result.implementation = object.at("implementation").get<std::string>();
  const std::uint8_t verdict = find_verdict(object.at("verdict").get_ref<const std::string&>());
  if (verdict == kVerdictCount)
    throw Error(ErrorCode::kReportUnknown, "wanted a verdict, got " + object["verdict"].dump());
  result.verdict = static_cast<Verdict>(verdict);
  result.code = text("code");
  result.detail = text("detail");
  result.output = text("output");
  result.known = text("known_failure");
  result.oracle = text("oracle");
  result.policy = text("policy");
  result.skipped_probes = object.value("skipped_probes", std::vector<std::string>());
  result.unprobed = object.value("unprobed", std::vector<std::string>());
  result.diagnosis = text("diagnosis");
  result.capsule = text("capsule");
  result.seconds = object.at("seconds").get<double>();
  result.command = object.at("command").get<std::string>();
  if (object.contains("tensors")) {
    result.comparison = CompareReport{.policy = result.policy,
                                      .formats = text("formats"),
                                      .tensors = read_tensor_reports(object.at("tensors"))};
  }
  return result;
}

KnownFailure read_known_failure(const json& object) {
  return {.implementation = object.at("implementation").get<std::string>(),
          .test_case = object.at("case").get<std::string>(),
          .code = object.at("code").get<std::string>(),
          .reason = object.at("reason").get<std::string>(),
          .expires = object.at("expires").get<std::string>(),
          .expired = object.at("expired").get<bool>(),
          .excused = integer(object, "excused"),
          .failed = integer(object, "failed"),
          .passed = integer(object, "passed")};
}

RunOrigin read_origin(const json& top) {
  const json& shard = top.at("shard");
  RunOrigin origin{.shard_index = integer(shard, "index"),
                   .shard_count = integer(shard, "count"),
                   .items = integer(shard, "items"),
                   .inputs = shard.at("inputs").get<std::string>(),
                   .options = top.at("options").get<std::map<std::string, std::string>>()};
  if (origin.shard_index < 1 || origin.shard_index > origin.shard_count)
    throw Error(ErrorCode::kReportUnknown, "shard: wanted 1 <= index <= count");
  return origin;
}

RunReport read(const json& top) {
  RunReport report;
  report.origin = read_origin(top);
  report.asked = top.at("implementations").get<std::vector<std::string>>();
  for (const json& entry : top.at("known_failures"))
    report.known_failures.push_back(read_known_failure(entry));
  for (const json& entry : top.at("results")) {
    report.results.push_back(read_result(entry));
    const std::int64_t item = report.results.back().item;
    if (item < 0 || item >= report.origin.items || !report.origin.holds(item)) {
      throw Error(
          ErrorCode::kReportUnknown,
          fmt::format("results: item {} is not of shard {}/{} of {} items", item,
                      report.origin.shard_index, report.origin.shard_count, report.origin.items));
    }
  }
  report.input_errors = top.at("input_errors").get<std::vector<std::string>>();
  report.halves = top.at("halves").get<std::vector<std::string>>();
  report.interrupted = top.at("interrupted").get<bool>();
  report.stopped = top.at("stopped").get<std::string>();
  report.not_run = integer(top, "not_run");
  report.seconds = top.at("seconds").get<double>();
  report.conclude();
  return report;
}

}  // namespace

StoredReport read_report(const std::filesystem::path& file) {
  const json top = parsed(file);
  require_format(file, top);
  try {
    return {.file = file,
            .report = read(top),
            .environment = top.at("environment").get<std::map<std::string, json>>()};
  } catch (const Error& error) {
    fail(file, error.code(), error.message());
  } catch (const json::exception& error) {
    fail(file, ErrorCode::kReportUnknown, std::string("wanted a whole report: ") + error.what());
  }
}

}  // namespace kda::harness
