#include "harness/report/report.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>

namespace kda::harness {
namespace {

std::string indented(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) out += "    " + line + "\n";
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

/// Names come from files: none may forge lines of the report.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

/// One problem with everything needed to look into it.
std::string problem(const CaseResult& result) {
  std::string text = fmt::format("{}  {}", upper(name(result.verdict)), one_line(result.case_name));
  if (!result.implementation.empty()) text += "  " + result.implementation;
  if (!result.code.empty()) text += "  " + result.code;
  text += "\n" + indented(one_line(result.detail));
  if (result.comparison && result.verdict == Verdict::kFailed)
    text += indented(to_text(*result.comparison));
  if (!result.oracle.empty()) text += "    expected values: " + result.oracle + "\n";
  return text + "    repeat: " + result.command + "\n\n";
}

bool is_problem(Verdict verdict) {
  return verdict != Verdict::kPassed && verdict != Verdict::kUnsupported;
}

using Counts = std::array<std::int64_t, kVerdictCount>;

/// Verdicts by implementation, in the order in which implementations first appear.
std::string table(const RunReport& report) {
  std::vector<std::pair<std::string, Counts>> rows;
  for (const CaseResult& result : report.results) {
    if (result.implementation.empty()) continue;
    auto row =
        std::ranges::find(rows, result.implementation, &std::pair<std::string, Counts>::first);
    if (row == rows.end()) row = rows.insert(rows.end(), {result.implementation, Counts{}});
    ++row->second[static_cast<std::size_t>(result.verdict)];
  }
  if (rows.empty()) return "";
  constexpr std::array kColumns{Verdict::kPassed, Verdict::kFailed, Verdict::kRefused,
                                Verdict::kMistrusted, Verdict::kUnsupported};
  std::string text = fmt::format("{:<16}", "implementation");
  for (const Verdict verdict : kColumns) text += fmt::format(" {:>11}", name(verdict));
  text += "\n";
  for (const auto& [implementation, counts] : rows) {
    text += fmt::format("{:<16}", implementation);
    for (const Verdict verdict : kColumns)
      text += fmt::format(" {:>11}", counts[static_cast<std::size_t>(verdict)]);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const RunReport& report) {
  std::string text;
  for (const CaseResult& result : report.results) {
    if (is_problem(result.verdict)) text += problem(result);
  }
  text += table(report);
  text += fmt::format(
      "{} cases, {} judged: {} passed, {} failed, {} refused, {} mistrusted, {} unsupported",
      report.cases, report.compared(), report.count(Verdict::kPassed),
      report.count(Verdict::kFailed), report.count(Verdict::kRefused),
      report.count(Verdict::kMistrusted), report.count(Verdict::kUnsupported));
  if (report.count(Verdict::kFixtureError) > 0) {
    text += fmt::format(", {} fixture errors", report.count(Verdict::kFixtureError));
  }
  text += fmt::format("; {:.1f} s\n", report.seconds);
  if (report.interrupted) text += "interrupted: the cases after these were not run\n";
  if (report.compared() == 0) text += "nothing was compared\n";
  return text;
}

}  // namespace kda::harness
