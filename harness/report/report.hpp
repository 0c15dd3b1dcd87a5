#pragma once

#include "harness/base/environment.hpp"
#include "harness/base/text_file.hpp"
#include "harness/run/run.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace kda::harness {

/// Failures with place and repeat command, then a table of verdicts by implementation.
[[nodiscard]] std::string to_text(const RunReport& report);

inline constexpr std::string_view kReportFormat = "kdacheck-report";
inline constexpr int kReportVersion = 1;

/// Where, which part of what, counts, results: everything that read_report needs to give the same
/// report again. Of this machine's environment unless another is given.
[[nodiscard]] nlohmann::json to_json(const RunReport& report);
[[nodiscard]] nlohmann::json to_json(const RunReport& report, const nlohmann::json& environment);

/// A report that was written as JSON.
struct StoredReport {
  std::filesystem::path file;
  RunReport report;
  std::map<std::string, nlohmann::json> environment;  ///< as `environment` names things
};

/// Reads what to_file_text(to_json(report)) wrote. Throws, naming file and place, kFileUnreadable,
/// kReportTruncated for one that ends in the middle, kReportUnknown for another kind of file,
/// kShardVersion for one of another version of this program.
[[nodiscard]] StoredReport read_report(const std::filesystem::path& file);

/// to_file_text(to_json(report, environment)), never holding the JSON of more than one result.
[[nodiscard]] std::string to_file_text(const RunReport& report, const nlohmann::json& environment);

/// One testsuite per implementation, one testcase per case; what was unsupported, skipped or a
/// known failure is "skipped", unreadable cases are "error".
[[nodiscard]] std::string to_junit(const RunReport& report);

}  // namespace kda::harness
