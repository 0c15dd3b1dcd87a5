#include "harness/fit/fit_plot.hpp"

#include "harness/fit/fit_svg.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using reference::Coefficients;

constexpr std::string_view kBlue = "#1f6fb4";
constexpr std::string_view kRed = "#c62828";
constexpr std::string_view kGrey = "#8d8d8d";
constexpr std::string_view kOrange = "#e08214";
constexpr double kPanelWidth = 460;
constexpr double kPanelHeight = 340;
constexpr double kMarginLeft = 80;
constexpr double kMarginTop = 40;
constexpr int kCurvePoints = 100;

/// f in extended precision: far from 0 the terms of a narrow range nearly cancel.
double evaluate(const Coefficients& f, double length) {
  const auto l = static_cast<long double>(length);
  return static_cast<double>((static_cast<long double>(f.a) * l + static_cast<long double>(f.b)) *
                                 l +
                             static_cast<long double>(f.c));
}

std::string fit_panel(const FitReport& report) {
  const Coefficients f = *report.fit.raw;
  const auto& lengths = report.samples.seq_lens;
  const auto& latencies = report.samples.latencies;
  const auto [shortest, longest] = std::minmax_element(lengths.begin() + 1, lengths.end());
  const auto low = static_cast<double>(*shortest);
  const auto high = static_cast<double>(*longest);

  std::vector<double> x;
  Points curve;
  for (int i = 0; i <= kCurvePoints; ++i) {
    x.push_back(low + (high - low) * i / kCurvePoints);
    curve.emplace_back(x.back(), evaluate(f, x.back()));
  }
  const auto [least, greatest] = std::minmax_element(latencies.begin() + 1, latencies.end());
  const double room = 0.05 * (*greatest - *least);
  SvgPanel panel("fit", {kMarginLeft, kMarginTop, kPanelWidth, kPanelHeight}, {low, high},
                 {*least - room, *greatest + room});

  if (!report.diagnostics.bootstrap.raw.empty()) {
    std::vector<double> below;
    std::vector<double> above;
    for (const double length : x) {
      const auto interval = percentile_interval(
          report.diagnostics.bootstrap, report.options.confidence,
          [length](const Coefficients& resample) { return evaluate(resample, length); });
      below.push_back(interval->low);
      above.push_back(interval->high);
    }
    panel.band(x, below, above, kBlue);
  }
  for (const auto& one : report.diagnostics.influence) {
    const bool outlier = one.outlier_p < reference::kOutlierLevel;
    panel.dot(static_cast<double>(one.length), one.latency, outlier ? kRed : kGrey,
              fmt::format("sample {}: length {}, {:g} ms", one.index, one.length, one.latency));
  }
  panel.polyline(curve, kBlue);  // over the samples, which would hide it
  return panel.finish(fmt::format("f(l) = {:.4g} l\u00b2 + {:.4g} l + {:.4g}", f.a, f.b, f.c),
                      fmt::format("tokens (dots: samples, line: raw fit, band: {:g} %)",
                                  100 * report.options.confidence),
                      "ms");
}

std::string schedule_panel(const FitReport& report) {
  std::int64_t largest = 0;
  for (const ScheduleStep& step : report.schedule) largest = std::max(largest, step.chunk);
  const auto prompt = static_cast<double>(report.query->prompt_len);
  SvgPanel panel("schedule",
                 {2 * kMarginLeft + kPanelWidth + 20, kMarginTop, kPanelWidth, kPanelHeight},
                 {0, prompt}, {0, 1.05 * static_cast<double>(largest)});
  for (const ScheduleStep& step : report.schedule) {
    const auto start = static_cast<double>(step.history);
    panel.bar({start, start + static_cast<double>(step.chunk)}, static_cast<double>(step.chunk),
              step.fallback ? kGrey
              : step.tail   ? kOrange
                            : kBlue,
              fmt::format("{} tokens at {}, {:.3f} ms{}{}", step.chunk, step.history, step.latency,
                          step.tail ? ", tail" : "", step.fallback ? ", static" : ""));
  }
  return panel.finish(
      fmt::format("{} chunks for a prompt of {}", report.schedule.size(), report.query->prompt_len),
      "history, tokens", "chunk, tokens");
}

}  // namespace

std::string to_svg(const FitReport& report) {
  const bool two = !report.schedule.empty();
  const double width = (two ? 2 : 1) * (kMarginLeft + kPanelWidth + 20) + (two ? 10 : 0);
  return svg_document(width, kMarginTop + kPanelHeight + 50, "kdacheck fit: " + report.source,
                      fit_panel(report) + (two ? schedule_panel(report) : ""));
}

}  // namespace kda::harness
