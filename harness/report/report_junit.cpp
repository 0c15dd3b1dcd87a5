#include "harness/report/report.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

/// The text with U+FFFD for bytes that are not UTF-8 (file names may hold any), by way of JSON.
std::string valid_utf8(std::string_view text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

/// Text for an attribute or an element; control characters that XML forbids are dropped.
std::string escaped(std::string_view text) {
  std::string out;
  std::string valid = valid_utf8(text);
  // U+FFFE and U+FFFF are UTF-8, and no characters of XML.
  for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (std::size_t at = valid.find(none); at != std::string::npos; at = valid.find(none))
      valid.erase(at, none.size());
  }
  for (const char c : valid) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\n': out += "&#10;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\t') out += c;
    }
  }
  return out;
}

/// The child element that says what went wrong; empty when passed.
std::string outcome(const CaseResult& result) {
  const auto element = [&](const char* tag) {
    std::string body = result.detail + "\n";
    if (!result.output.empty()) body += "it printed:\n" + result.output + "\n";
    if (result.comparison) body += to_text(*result.comparison);
    body += result.diagnosis;
    body += "repeat: " + result.command;
    return fmt::format("      <{0} type=\"{1}\" message=\"{2}\">{3}</{0}>\n", tag,
                       escaped(result.code), escaped(result.detail), escaped(body));
  };
  const auto skipped = [](const std::string& why) {
    return fmt::format("      <skipped message=\"{}\"/>\n", escaped(why));
  };
  if (is_failure(result.verdict)) return element("failure");
  switch (result.verdict) {
    case Verdict::kFixtureError: return element("error");
    case Verdict::kKnownFailure: return skipped("known failure: " + result.known);
    case Verdict::kUnsupported:
    case Verdict::kSkipped: return skipped(result.detail);
    default: return "";
  }
}

/// The verdict on all results together, as a test case of its own.
std::string bias_case(const RunBias& bias) {
  std::string text = "    <testcase classname=\"run\" name=\"bias\" time=\"0\">\n";
  if (bias.failed) {
    text +=
        fmt::format("      <failure type=\"biased\" message=\"{}\"/>\n", escaped(to_text(bias)));
  }
  return text + "    </testcase>\n";
}

std::string suite(const std::string& implementation, const std::vector<const CaseResult*>& results,
                  const RunBias* bias) {
  const auto count = [&](auto matches) {
    return std::ranges::count_if(results, [&](const CaseResult* r) { return matches(r->verdict); });
  };
  const auto was_skipped = [](Verdict verdict) {
    return verdict == Verdict::kUnsupported || verdict == Verdict::kSkipped ||
           verdict == Verdict::kKnownFailure;
  };
  double seconds = 0;
  for (const CaseResult* result : results) seconds += result->seconds;
  std::string text = fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"{:.6f}\">\n",
      escaped(implementation.empty() ? "fixtures" : implementation),
      results.size() + (bias != nullptr ? 1 : 0),
      count(is_failure) + (bias != nullptr && bias->failed ? 1 : 0),
      count([](Verdict v) { return v == Verdict::kFixtureError; }), count(was_skipped), seconds);
  for (const CaseResult* result : results) {
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\">\n",
                        escaped(result->op), escaped(result->case_name), result->seconds);
    text += outcome(*result) + "    </testcase>\n";
  }
  if (bias != nullptr) text += bias_case(*bias);
  return text + "  </testsuite>\n";
}

}  // namespace

std::string to_junit(const RunReport& report) {
  std::vector<std::pair<std::string, std::vector<const CaseResult*>>> suites;
  for (const CaseResult& result : report.results) {
    auto same = std::ranges::find_if(
        suites, [&](const auto& s) { return s.first == result.implementation; });
    if (same == suites.end()) same = suites.insert(suites.end(), {result.implementation, {}});
    same->second.push_back(&result);
  }
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kdacheck\">\n";
  for (const auto& [implementation, results] : suites) {
    const auto bias = std::ranges::find(report.biases, implementation, &RunBias::implementation);
    text += suite(implementation, results, bias == report.biases.end() ? nullptr : &*bias);
  }
  return text + "</testsuites>\n";
}

}  // namespace kda::harness
