#include "harness/report/merge.hpp"

#include "reference/types/error.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using nlohmann::json;

std::string shard_text(const RunOrigin& origin) {
  return fmt::format("{}/{}", origin.shard_index, origin.shard_count);
}

/// Everything that must be the same in all shards, by the option that sets it.
std::map<std::string, std::string> options_of(const RunReport& report) {
  std::map<std::string, std::string> options = report.origin.options;
  options["--impl"] = fmt::format("{}", fmt::join(report.asked, " "));
  std::string known;
  for (const KnownFailure& entry : report.known_failures) {
    known += fmt::format("{} {} {} {} {}; ", entry.implementation, entry.test_case, entry.code,
                         entry.reason, entry.expires);
  }
  options["--known-failures"] = known;
  options["--shard"] = fmt::format("I/{}", report.origin.shard_count);
  return options;
}

void require_same_options(const StoredReport& first, const StoredReport& other) {
  const std::map<std::string, std::string> wanted = options_of(first.report);
  const std::map<std::string, std::string> got = options_of(other.report);
  if (wanted == got) return;
  const auto value = [](const std::map<std::string, std::string>& options, const std::string& key) {
    const auto found = options.find(key);
    return found == options.end() || found->second.empty() ? "none" : found->second;
  };
  std::map<std::string, std::string> all = wanted;
  all.insert(got.begin(), got.end());
  for (const auto& [key, ignored] : all) {
    if (value(wanted, key) == value(got, key)) continue;
    throw Error(ErrorCode::kShardOptions,
                fmt::format("{}: {}: wanted {} as in {}, got {}", other.file.string(), key,
                            value(wanted, key), first.file.string(), value(got, key)));
  }
}

void require_same_inputs(const StoredReport& first, const StoredReport& other) {
  const RunOrigin& wanted = first.report.origin;
  const RunOrigin& got = other.report.origin;
  if (wanted.inputs == got.inputs && wanted.items == got.items) return;
  throw Error(ErrorCode::kShardInputs,
              fmt::format("{}: wanted the {} cases of {} (sha256 {:.12}), got {} (sha256 {:.12})",
                          other.file.string(), wanted.items, first.file.string(), wanted.inputs,
                          got.items, got.inputs));
}

/// In the order of their numbers, each there once.
void require_all(const std::vector<StoredReport>& shards) {
  for (std::size_t i = 1; i < shards.size(); ++i) {
    if (shards[i].report.origin.shard_index != shards[i - 1].report.origin.shard_index) continue;
    throw Error(
        ErrorCode::kShardRepeated,
        fmt::format("{}: wanted each shard once, got {} in {} as well", shards[i].file.string(),
                    shard_text(shards[i].report.origin), shards[i - 1].file.string()));
  }
  const std::int64_t count = shards.front().report.origin.shard_count;
  std::vector<std::string> missing;
  auto shard = shards.begin();
  constexpr std::size_t kMostNamed = 8;  // and looked for: a file may say any count
  for (std::int64_t i = 1; i <= count && missing.size() < kMostNamed; ++i) {
    if (shard != shards.end() && shard->report.origin.shard_index == i) {
      ++shard;
    } else {
      missing.push_back(fmt::format("{}/{}", i, count));
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kShardMissing, fmt::format("wanted all {} shards, got {}, not {}", count,
                                                    shards.size(), fmt::join(missing, ", ")));
}

/// The values of one machine, or of several where they differ.
std::map<std::string, json> merged_environment(const std::vector<StoredReport>& shards) {
  std::map<std::string, json> merged = shards.front().environment;
  for (auto& [key, value] : merged) {
    json different = json::array();
    for (const StoredReport& shard : shards) {
      const auto found = shard.environment.find(key);
      const json there = found == shard.environment.end() ? json() : found->second;
      if (std::ranges::find(different, there) == different.end()) different.push_back(there);
    }
    if (different.size() > 1) value = std::move(different);
  }
  return merged;
}

void add_known_failures(std::vector<KnownFailure>& all, const std::vector<KnownFailure>& part) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].expired = all[i].expired || part[i].expired;
    all[i].excused += part[i].excused;
    all[i].failed += part[i].failed;
    all[i].passed += part[i].passed;
  }
}

/// Every shard looks at all paths, so each names the same lines.
void add_lines(std::vector<std::string>& all, const std::vector<std::string>& part) {
  for (const std::string& line : part) {
    if (std::ranges::find(all, line) == all.end()) all.push_back(line);
  }
}

}  // namespace

StoredReport merge_shards(std::vector<StoredReport> shards) {
  if (shards.empty()) throw Error(ErrorCode::kShardMissing, "wanted results, got none");
  for (const StoredReport& shard : shards) {
    require_same_options(shards.front(), shard);
    require_same_inputs(shards.front(), shard);
  }
  std::ranges::stable_sort(shards, {},
                           [](const StoredReport& s) { return s.report.origin.shard_index; });
  require_all(shards);

  StoredReport whole;
  whole.environment = merged_environment(shards);
  whole.report = std::move(shards.front().report);
  whole.report.origin.shard_index = 1;
  whole.report.origin.shard_count = 1;
  RunReport& report = whole.report;
  for (auto shard = shards.begin() + 1; shard != shards.end(); ++shard) {
    RunReport& part = shard->report;
    std::ranges::move(part.results, std::back_inserter(report.results));
    add_known_failures(report.known_failures, part.known_failures);
    add_lines(report.input_errors, part.input_errors);
    add_lines(report.halves, part.halves);
    report.interrupted = report.interrupted || part.interrupted;
    if (report.stopped.empty()) report.stopped = std::move(part.stopped);
    report.not_run += part.not_run;
    report.seconds += part.seconds;
  }
  std::ranges::stable_sort(report.results, {}, &CaseResult::item);
  report.conclude();
  return whole;
}

}  // namespace kda::harness
