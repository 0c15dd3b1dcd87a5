#include "harness/report/report.hpp"

#include <algorithm>
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

/// What a foreign process printed, without control characters that would act on a terminal.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F; }, ' ');
  return text;
}

std::string known_failure(const CaseResult& result) {
  return fmt::format("KNOWN_FAILURE  {}  {}  {}\n    {}\n\n", one_line(result.case_name),
                     one_line(result.implementation), result.code, one_line(result.known));
}

/// One problem with everything needed to look into it.
std::string problem(const CaseResult& result) {
  std::string text = fmt::format("{}  {}", upper(name(result.verdict)), one_line(result.case_name));
  if (!result.implementation.empty()) text += "  " + result.implementation;
  if (!result.code.empty()) text += "  " + result.code;
  text += "\n" + indented(one_line(result.detail));
  if (result.comparison && result.verdict == Verdict::kFailed)
    text += indented(to_text(*result.comparison)) + indented(result.diagnosis);
  if (!result.output.empty())
    text += "    it printed:\n" + indented(indented(printable(result.output)));
  if (!result.oracle.empty()) text += "    expected values: " + result.oracle + "\n";
  if (!result.capsule.empty()) text += "    capsule: kdacheck compare " + result.capsule + "\n";
  return text + "    repeat: " + result.command + "\n\n";
}

std::string problem(const RunBias& bias) {
  return fmt::format("FAILED  all cases together  {}  biased\n{}\n", bias.implementation,
                     indented(to_text(bias)));
}

bool is_problem(Verdict verdict) {
  return is_failure(verdict) || verdict == Verdict::kSkipped || verdict == Verdict::kFixtureError;
}

using Counts = std::array<std::int64_t, kVerdictCount>;

constexpr std::size_t kWidestName = 48;

/// A long command, cut in its middle.
std::string shortened(const std::string& name) {
  if (name.size() <= kWidestName) return name;
  return name.substr(0, 22) + "..." + name.substr(name.size() - 23);
}

int width_of(Verdict verdict) { return verdict == Verdict::kKnownFailure ? 13 : 11; }

/// Named in the summary only when there are any.
bool is_rare(Verdict verdict) {
  return verdict == Verdict::kCrashed || verdict == Verdict::kTimedOut ||
         verdict == Verdict::kMalformed || verdict == Verdict::kKnownFailure ||
         verdict == Verdict::kSkipped || verdict == Verdict::kFixtureError;
}

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
  std::vector<Verdict> columns{Verdict::kPassed, Verdict::kFailed, Verdict::kRefused,
                               Verdict::kMistrusted};
  for (const Verdict rare : {Verdict::kCrashed, Verdict::kTimedOut, Verdict::kMalformed,
                             Verdict::kKnownFailure, Verdict::kSkipped}) {
    if (report.count(rare) > 0) columns.push_back(rare);
  }
  columns.push_back(Verdict::kUnsupported);
  std::size_t width = 16;
  for (const auto& row : rows) width = std::max(width, std::min(row.first.size(), kWidestName));
  std::string text = fmt::format("{:<{}}", "implementation", width);
  for (const Verdict verdict : columns)
    text += fmt::format(" {:>{}}", name(verdict), width_of(verdict));
  text += "\n";
  for (const auto& [implementation, counts] : rows) {
    text += fmt::format("{:<{}}", shortened(one_line(implementation)), width);
    for (const Verdict verdict : columns) {
      text += fmt::format(" {:>{}}", counts[static_cast<std::size_t>(verdict)], width_of(verdict));
    }
    text += "\n";
  }
  return text;
}

/// The largest shares of the limits of `derived` that an implementation's passed results use.
struct BoundUse {
  std::string implementation;
  double element = 0;
  double row = 0;
  double group = 0;
  std::optional<double> bias{};  ///< absent where the test applied to none of them
  const CaseResult* nearest = nullptr;
};

void raise(BoundUse& most, const CaseResult& result) {
  for (const TensorReport& tensor : result.comparison->tensors) {
    if (!tensor.use || tensor.use->sums.count == 0) continue;
    if (tensor.use->element.share > most.element) most.nearest = &result;
    most.element = std::max(most.element, tensor.use->element.share);
    most.row = std::max(most.row, tensor.use->row.share);
    most.group = std::max(most.group, tensor.use->group.share);
    if (tensor.use->bias) most.bias = std::max(most.bias.value_or(0), tensor.use->bias->share);
  }
}

/// How near to the limits of `derived` the passed results come; nothing when it judged none.
std::string bound_table(const RunReport& report) {
  std::vector<BoundUse> rows;
  for (const CaseResult& result : report.results) {
    if (result.verdict != Verdict::kPassed || result.policy != "derived") continue;
    auto row = std::ranges::find(rows, result.implementation, &BoundUse::implementation);
    if (row == rows.end()) row = rows.insert(rows.end(), BoundUse{result.implementation});
    raise(*row, result);
  }
  if (rows.empty()) return "";
  std::string text = fmt::format("{:<17} {:>8} {:>8} {:>8} {:>8} {:>8}  {}\n", "used of the bound",
                                 "element", "row", "group", "bias", "run bias", "nearest case");
  for (const BoundUse& row : rows) {
    const auto bias =
        std::ranges::find(report.biases, row.implementation, &RunBias::implementation);
    const std::string lean = bias == report.biases.end() ? "-" : fmt::format("{:+.3f}", bias->mean);
    const std::string share = row.bias ? fmt::format("{:.0f}%", 100 * *row.bias) : "-";
    text +=
        fmt::format("{:<17} {:>7.0f}% {:>7.0f}% {:>7.0f}% {:>8} {:>8}  {}\n", row.implementation,
                    100 * row.element, 100 * row.row, 100 * row.group, share, lean,
                    row.nearest != nullptr ? one_line(row.nearest->case_name) : "");
  }
  return text;
}

/// The last line: what was asked for and what became of all of it.
std::string summary(const RunReport& report) {
  std::string text = fmt::format("{} cases, {} judged:", report.cases, report.compared());
  const char* separator = " ";
  for (const Verdict verdict :
       {Verdict::kPassed, Verdict::kFailed, Verdict::kRefused, Verdict::kMistrusted,
        Verdict::kCrashed, Verdict::kTimedOut, Verdict::kMalformed, Verdict::kKnownFailure,
        Verdict::kSkipped, Verdict::kUnsupported, Verdict::kFixtureError}) {
    const std::int64_t count = report.count(verdict);
    if (count == 0 && is_rare(verdict)) continue;
    std::string words(name(verdict));
    std::ranges::replace(words, '_', ' ');
    text += fmt::format(
        "{}{} {}{}", separator, count, words,
        verdict == Verdict::kFixtureError || verdict == Verdict::kKnownFailure ? "s" : "");
    separator = ", ";
  }
  if (report.required() != report.compared())
    text += fmt::format("; {} were asked for", report.required());
  return text + fmt::format("; {:.1f} s\n", report.seconds);
}

}  // namespace

std::string to_text(const RunReport& report) {
  std::string text;
  for (const CaseResult& result : report.results) {
    if (is_problem(result.verdict)) text += problem(result);
    if (result.verdict == Verdict::kKnownFailure) text += known_failure(result);
  }
  for (const RunBias& bias : report.biases) {
    if (bias.failed) text += problem(bias);
  }
  for (const std::string& note : report.notes) text += one_line(note) + "\n";
  text += table(report) + bound_table(report);
  text += summary(report);
  if (report.interrupted)
    text += fmt::format("interrupted: {} more cases were not run\n", report.not_run);
  if (!report.stopped.empty()) {
    text += fmt::format("stopped: {}: {} more cases were not run\n", one_line(report.stopped),
                        report.not_run);
  }
  for (const std::string& implementation : report.idle)
    text += one_line(implementation) + " was asked for and judged no case\n";
  if (report.origin.is_part()) {
    text += fmt::format(
        "shard {} of {}: what all cases together say, such as the bias of the run, is judged by "
        "kdacheck merge\n",
        report.origin.shard_index, report.origin.shard_count);
  }
  if (report.compared() == 0) text += "nothing was compared\n";
  return text;
}

}  // namespace kda::harness
