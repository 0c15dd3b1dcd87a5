#pragma once

#include "harness/run/run.hpp"

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

/// Failures with place and repeat command, then a table of verdicts by implementation.
[[nodiscard]] std::string to_text(const RunReport& report);

/// Format "kdacheck-report", version 1: environment, counts, results.
[[nodiscard]] nlohmann::json to_json(const RunReport& report);

/// JSON as reports hold it: indented, bytes that are not UTF-8 replaced, a newline at the end.
[[nodiscard]] std::string to_file_text(const nlohmann::json& json);

/// One testsuite per implementation, one testcase per case; what was unsupported, skipped or a
/// known failure is "skipped", unreadable cases are "error".
[[nodiscard]] std::string to_junit(const RunReport& report);

/// Machine, compiler and version, for reports.
[[nodiscard]] nlohmann::json environment();

/// Writes beside and renames, so that no half report has the name; a link stays and what it points
/// to is replaced. Throws kReportUnwritable and leaves nothing behind.
void write_text(const std::filesystem::path& file, std::string_view text);

}  // namespace kda::harness
