#include "harness/fit/fit_report.hpp"

#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using reference::Coefficients;
using reference::Interval;

template <class... Arguments>
void add(std::string& text, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Arguments>(arguments)...);
}

std::string interval_text(const std::optional<Interval>& interval) {
  return interval ? fmt::format("{:.6g} ... {:.6g}", interval->low, interval->high) : "";
}

void add_coefficients(std::string& text, const FitReport& report) {
  const auto& fit = report.fit;
  const auto& quality = *fit.quality;
  const auto& found = report.diagnostics;
  add(text, "f(l) = a l^2 + b l + c, ms for l tokens\n");
  add(text, "  {:<10} {:>15} {:>12}  {}\n", "", "raw", "std. error",
      found.a ? fmt::format("{:g} % interval", 100 * report.options.confidence) : "");
  const auto line = [&](const char* label, double value, double error,
                        const std::optional<Interval>& interval) {
    add(text, "  {:<10} {:>15.9g} {:>12.3g}  {}\n", label, value, error, interval_text(interval));
  };
  line("a ms/tok^2", fit.raw->a, quality.standard_errors.a, found.a);
  line("b ms/tok", fit.raw->b, quality.standard_errors.b, found.b);
  line("c ms", fit.raw->c, quality.standard_errors.c, found.c);
  if (fit.corrected && fit.corrected->b != fit.raw->b) {
    add(text, "  used: a={:.9g}, b={:g}, c={:.9g}\n", fit.corrected->a, fit.corrected->b,
        fit.corrected->c);
  }
  add(text, "  R^2 {:.9f}, residual {:.4g} ms, condition of the unscaled design {:.2g}\n",
      quality.r_squared, quality.residual_sd, quality.condition);
  if (found.bootstrap.share_a_not_positive > 0) {
    add(text, "  a <= 0 in {:.1f} % of {} resamples\n", 100 * found.bootstrap.share_a_not_positive,
        found.bootstrap.raw.size());
  }
}

void add_schedule(std::string& text, const FitReport& report) {
  add(text, "\n{:>6} {:>10} {:>8} {:>12}\n", "chunk", "history", "tokens", "latency ms");
  std::size_t number = 0;
  double total = 0;
  for (const ScheduleStep& step : report.schedule) {
    total += step.latency;
    add(text, "{:>6} {:>10} {:>8} {:>12.3f}{}{}\n", ++number, step.history, step.chunk,
        step.latency, step.tail ? "  tail" : "",
        step.fallback ? fmt::format("  static ({})", name(*step.fallback)) : "");
  }
  add(text, "{:>6} {:>10} {:>8} {:>12.3f}  sum\n", "", "", report.query->prompt_len, total);
}

nlohmann::json to_json(const Coefficients& f) { return {{"a", f.a}, {"b", f.b}, {"c", f.c}}; }

nlohmann::json to_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {interval->low, interval->high};
}

nlohmann::json to_json(const std::optional<reference::TestResult>& test) {
  if (!test) return nullptr;
  return {{"method", test->method}, {"statistic", test->statistic}, {"p", test->p}};
}

nlohmann::json influence_json(const std::vector<reference::Influence>& influence) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& one : influence) {
    out.push_back({{"index", one.index},
                   {"length", one.length},
                   {"latency", one.latency},
                   {"leverage", one.leverage},
                   {"deleted_residual", one.deleted_residual},
                   {"studentised", one.studentised},
                   {"outlier_p", one.outlier_p},
                   {"without", to_json(one.without)}});
  }
  return out;
}

nlohmann::json schedule_json(const FitReport& report) {
  nlohmann::json steps = nlohmann::json::array();
  for (const ScheduleStep& step : report.schedule) {
    steps.push_back({{"history", step.history},
                     {"chunk", step.chunk},
                     {"latency", step.latency},
                     {"tail", step.tail}});
    if (step.fallback) steps.back()["static_because"] = name(*step.fallback);
  }
  return steps;
}

nlohmann::json warnings_json(const FitReport& report) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& warning : report.fit.warnings) {
    out.push_back({{"code", name(warning.code)}, {"message", warning.message}});
  }
  for (const auto& found : report.diagnostics.doubts) {
    out.push_back({{"code", name(found.doubt)}, {"message", found.message}});
  }
  return out;
}

}  // namespace

std::string to_text(const FitReport& report) {
  std::string text;
  const std::size_t samples = report.samples.seq_lens.size();
  add(text, "{}: {} samples", report.source, samples);
  if (report.fit.quality) {
    add(text, ", {} kept (the first is the cold start), {} distinct lengths", samples - 1,
        report.diagnostics.distinct_lengths);
  }
  text += '\n';
  if (report.fit.quality) add_coefficients(text, report);
  if (report.target && !report.target->error) {
    const auto& interval = report.diagnostics.target;
    add(text, "target latency {:.6g} ms for a chunk of {}", report.target->value,
        *report.base_chunk_size);
    if (interval) add(text, "  ({:.6g} ... {:.6g})", interval->low, interval->high);
    text += '\n';
  }
  for (const auto& warning : report.fit.warnings) {
    add(text, "warning {}: {}\n", name(warning.code), warning.message);
  }
  for (const auto& found : report.diagnostics.doubts) {
    add(text, "warning {}: {}\n", name(found.doubt), found.message);
  }
  if (!report.schedule.empty()) add_schedule(text, report);
  return text;
}

nlohmann::json to_json(const FitReport& report) {
  const auto& fit = report.fit;
  nlohmann::json out{{"format", "kdacheck-fit"},
                     {"version", 1},
                     {"source", report.source},
                     {"seq_lens", report.samples.seq_lens},
                     {"latencies_ms", report.samples.latencies},
                     {"error", nullptr},
                     {"warnings", warnings_json(report)}};
  if (fit.error) out["error"] = {{"code", name(*fit.error)}, {"message", fit.message}};
  if (report.target && report.target->error) {
    out["error"] = {{"code", name(*report.target->error)}, {"message", report.target->message}};
  }
  if (fit.raw) out["raw"] = to_json(*fit.raw);
  if (fit.corrected) out["corrected"] = to_json(*fit.corrected);
  if (fit.quality) {
    const auto& found = report.diagnostics;
    out["residuals"] = fit.quality->residuals;
    out["residual_sd"] = fit.quality->residual_sd;
    out["r_squared"] = fit.quality->r_squared;
    out["standard_errors"] = to_json(fit.quality->standard_errors);
    out["condition"] = fit.quality->condition;
    out["distinct_lengths"] = found.distinct_lengths;
    out["intervals"] = {{"confidence", report.options.confidence},
                        {"seed", report.options.bootstrap.seed},
                        {"resamples", found.bootstrap.raw.size()},
                        {"unsolved", found.bootstrap.unsolved},
                        {"share_a_not_positive", found.bootstrap.share_a_not_positive},
                        {"a", to_json(found.a)},
                        {"b", to_json(found.b)},
                        {"c", to_json(found.c)},
                        {"target_latency", to_json(found.target)}};
    out["curvature_test"] = to_json(found.curvature);
    out["lack_of_fit_test"] = to_json(found.lack_of_fit);
    out["influence"] = influence_json(found.influence);
  }
  if (report.base_chunk_size) out["base_chunk_size"] = *report.base_chunk_size;
  if (report.target) out["target_latency"] = report.target->value;
  if (report.query) out["schedule"] = schedule_json(report);
  return out;
}

}  // namespace kda::harness
