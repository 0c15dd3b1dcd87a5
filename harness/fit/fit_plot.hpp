#pragma once

#include "harness/fit/fit_report.hpp"

#include <string>

namespace kda::harness {

/// An SVG image: the kept samples with the raw fit and its bootstrap band, outliers marked; beside
/// it the schedule, chunk by chunk, where the report has one. Wants a report whose fit has raw
/// coefficients.
[[nodiscard]] std::string to_svg(const FitReport& report);

}  // namespace kda::harness
