#include "harness/compare/compare.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;

json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

json numbers(const std::vector<double>& values) {
  json list = json::array();
  for (const double x : values) list.push_back(number(x));
  return list;
}

json to_json(const Place& place) {
  json object{{"n", place.n}, {"hv", place.hv}, {"v", place.v}};
  if (place.t) object["t"] = *place.t;
  if (place.k) object["k"] = *place.k;
  if (place.chunk) object["chunk"] = *place.chunk;
  return object;
}

json to_json(const Finding& finding) {
  return {{"place", to_json(finding.place)},
          {"expected", number(finding.expected)},
          {"got", number(finding.got)},
          {"bound", number(finding.bound)}};
}

json to_json(const Window& window) {
  return {{"first_row", window.first_row},
          {"first_col", window.first_col},
          {"rows", window.rows},
          {"cols", window.cols},
          {"centre_row", window.centre_row},
          {"centre_col", window.centre_col},
          {"expected", numbers(window.expected)},
          {"got", numbers(window.got)}};
}

/// Three digits are enough for a plot, and keep large reports small.
json to_json(const TokenProfile& tokens) {
  json shares = json::array();
  for (const double share : tokens.shares()) {
    shares.push_back(std::isfinite(share)
                         ? json(std::strtod(fmt::format("{:.3g}", share).c_str(), nullptr))
                         : number(share));
  }
  return {{"step", tokens.step()}, {"used_share", shares}};
}

json to_json(const Metrics& metrics) {
  return {{"compared", metrics.compared},
          {"bad", metrics.bad},
          {"bad_share", number(metrics.bad_share())},
          {"non_finite", metrics.non_finite},
          {"max_abs", number(metrics.max_abs)},
          {"max_rel", number(metrics.max_rel)},
          {"max_ulp", metrics.max_ulp},
          {"rms_ratio", number(metrics.rms_ratio())},
          {"max_expected", number(metrics.max_expected)},
          {"rms_expected", number(metrics.rms_expected())},
          {"sum_error2", number(metrics.sum_error2)},
          {"sum_expected2", number(metrics.sum_expected2)}};
}

json to_json(const Share& share) {
  return {{"share", number(share.share)}, {"place", share.place}};
}

/// As read_comparison adds them up again.
json to_json(const SigmaSums& sums) {
  return {{"count", sums.count},
          {"z2", number(sums.z2)},
          {"signed_z", number(sums.signed_z)},
          {"sigma2", number(sums.sigma2)},
          {"exact2", number(sums.exact2)},
          {"ruled", sums.ruled},
          {"ruled_rows", sums.ruled_rows},
          {"ruled_z", number(sums.ruled_z)}};
}

/// How `derived` saw the tensor; `bias` is null where that test did not apply. `resolution`: the
/// relative error from which on an element fails.
json to_json(const SigmaUse& use) {
  const DeviationLimits& limits = *find_policy("derived").deviations;
  return {{"element", to_json(use.element)}, {"row", to_json(use.row)},
          {"group", to_json(use.group)},     {"bias", use.bias ? to_json(*use.bias) : json()},
          {"rms", number(use.sums.rms())},   {"mean", number(use.sums.mean())},
          {"rows", use.sums.rows},           {"resolution", number(use.resolution(limits))},
          {"sums", to_json(use.sums)}};
}

json to_json(const TensorReport& report) {
  json object{{"name", report.name},
              {"passed", report.passed},
              {"reason", report.reason},
              {"detail", report.detail},
              {"used_share", number(report.used_share)},
              {"metrics", to_json(report.metrics)}};
  if (report.dtype) object["dtype"] = name(*report.dtype);
  if (report.worst) object["worst"] = to_json(*report.worst);
  if (report.first_bad) object["first_bad"] = to_json(*report.first_bad);
  if (report.window) object["window"] = to_json(*report.window);
  if (!report.tokens.shares().empty()) object["tokens"] = to_json(report.tokens);
  if (report.peer_ratio) object["peer_ratio"] = number(*report.peer_ratio);
  if (report.use) object["sigma"] = to_json(*report.use);
  return object;
}

std::string to_text(std::string_view title, const Finding& finding) {
  return fmt::format("    {:<10}{}: expected {:.9g}, got {:.9g}, bound {:.3g}\n", title,
                     to_string(finding.place), finding.expected, finding.got, finding.bound);
}

std::string percent(const Share& share) {
  if (share.place.empty()) return "0%";
  return fmt::format("{:.3g}% ({})", 100 * share.share, share.place);
}

std::string to_text(const SigmaUse& use) {
  const DeviationLimits& limits = *find_policy("derived").deviations;
  std::string text = fmt::format("    of the limits: element {}, row {}, group {}",
                                 percent(use.element), percent(use.row), percent(use.group));
  text += ", bias " + (use.bias ? percent(*use.bias) : "-");
  return text + fmt::format(
                    "\n    sees element errors above {:.2g}% of the RMS; RMS error {:.2g} "
                    "sigma, mean {:.2g}\n",
                    100 * use.resolution(limits), use.sums.rms(), use.sums.mean());
}

/// 735, or 3.22e+09 where single ones count no more.
std::string ulp_text(std::uint64_t ulp) {
  constexpr std::uint64_t kMostInFull = 1'000'000;
  if (ulp <= kMostInFull) return std::to_string(ulp);
  return fmt::format("{:.3g}", static_cast<double>(ulp));
}

}  // namespace

std::string to_text(const TensorReport& report) {
  std::string text = fmt::format("  {}: ", report.name);
  if (report.passed) {
    text += fmt::format("passed, {:.3g} of the bound used", report.used_share);
  } else {
    text += fmt::format("{}: {}", report.reason, report.detail);
  }
  text += '\n';
  const Metrics& metrics = report.metrics;
  if (metrics.compared == 0) return text;
  text += fmt::format(
      "    max abs {:.3g}, max rel {:.3g}, RMS ratio {:.3g}, {} ulp of {}, bad {} of {} "
      "({:.3g}%)\n",
      metrics.max_abs, metrics.max_rel, metrics.rms_ratio(), ulp_text(metrics.max_ulp),
      report.dtype ? name(*report.dtype) : "?", metrics.bad, metrics.compared,
      100 * metrics.bad_share());
  if (report.use && report.use->sums.count > 0) text += to_text(*report.use);
  if (report.worst) text += to_text("worst", *report.worst);
  if (report.first_bad) text += to_text("first bad", *report.first_bad);
  if (report.window && report.worst && !report.passed) {
    text += to_text(*report.window, report.worst->place.kind);
  }
  return text;
}

std::string to_text(const CompareReport& report) {
  std::string text =
      fmt::format("policy {}: {}\n", report.policy, report.passed() ? "passed" : "failed");
  if (!report.formats.empty()) text += "  formats: " + report.formats + "\n";
  for (const TensorReport& tensor : report.tensors) text += to_text(tensor);
  return text;
}

json to_json(const CompareReport& report) {
  json tensors = json::array();
  for (const TensorReport& tensor : report.tensors) tensors.push_back(to_json(tensor));
  return {{"policy", report.policy}, {"passed", report.passed()}, {"tensors", tensors}};
}

}  // namespace kda::harness
