#pragma once

#include "harness/report/report.hpp"

#include <string>

namespace kda::harness {

/// Where the reports of a run go; empty = nowhere.
struct ReportFiles {
  std::string json;
  std::string junit;
};

/// Prints the report and writes the others; the exit status that the report asks for. When one
/// cannot be written says so and goes on, since the results are worth more: bad input then.
[[nodiscard]] Exit deliver(const RunReport& report, const nlohmann::json& environment,
                           const ReportFiles& files);

}  // namespace kda::harness
