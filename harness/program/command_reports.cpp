#include "harness/program/command_reports.hpp"

#include "harness/program/command.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace kda::harness {
namespace {

void write_report(const std::string& file, const std::string& text, Exit& exit) {
  if (file.empty()) return;
  try {
    write_text(file, text);
  } catch (const Error& error) {
    print_error(error.what());
    if (exit != Exit::kInterrupted) exit = Exit::kBadInput;
  }
}

}  // namespace

Exit deliver(const RunReport& report, const nlohmann::json& environment, const ReportFiles& files) {
  fmt::print("{}", to_text(report));
  std::fflush(stdout);
  for (const std::string& error : report.input_errors) print_error(error);
  Exit exit = report.exit_status();
  write_report(files.junit, to_junit(report), exit);
  if (!files.json.empty()) write_report(files.json, to_file_text(report, environment), exit);
  return exit;
}

}  // namespace kda::harness
