#pragma once

#include "reference/fit.hpp"
#include "reference/fit_bootstrap.hpp"
#include "reference/fit_influence.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kda::reference {

/// Outliers and lack of fit are reported only when chance gives them this rarely in a profile.
inline constexpr double kOutlierLevel = 1e-3;

/// Doubts about a fit. They never change the answer. Names are stable; append only.
enum class FitDoubt : std::uint8_t {
  kFewDistinctLengths,
  kOutlier,
  kDecisiveSample,
  kLackOfFit,
  kCurvatureUncertain,
  kTargetUncertain,
  kBaseOutsideSamples,
};

struct FitDoubtInfo {
  FitDoubt doubt;
  std::string_view name;     ///< "few_distinct_lengths"
  std::string_view meaning;  ///< when it is raised, one sentence
};

/// The table of doubts, in the order in which they are reported.
[[nodiscard]] std::span<const FitDoubtInfo> all_fit_doubts() noexcept;
[[nodiscard]] std::string_view name(FitDoubt doubt) noexcept;

struct FitDoubtFound {
  FitDoubt doubt = FitDoubt::kFewDistinctLengths;
  std::string message;
};

/// A hypothesis test: what was computed and how often chance alone gives more.
struct TestResult {
  std::string_view method;
  double statistic = 0;
  double p = 1;
};

struct DiagnosticsOptions {
  std::optional<std::int64_t> base_chunk_size;  ///< tokens; wanted for the target's interval
  double confidence = 0.95;                     ///< of the intervals
  BootstrapOptions bootstrap;                   ///< resamples = 0 leaves it out
};

struct Diagnostics {
  std::size_t distinct_lengths = 0;
  Bootstrap bootstrap;
  std::optional<Interval> a, b, c;  ///< bootstrap intervals of the raw coefficients
  std::optional<Interval> target;   ///< of the target latency with b corrected, ms
  std::vector<Influence> influence;
  std::optional<TestResult> curvature;    ///< of a <= 0 against a > 0
  std::optional<TestResult> lack_of_fit;  ///< of the quadratic against any other curve
  std::vector<FitDoubtFound> doubts;
};

/// Says whether to trust a fit of these samples. `fit` must be the result for the same samples; one
/// without quality (the samples were refused) gives empty diagnostics. Where the residuals are
/// mere rounding, no test on them is made.
[[nodiscard]] Diagnostics diagnose(std::span<const std::int64_t> seq_lens,
                                   std::span<const double> latencies, const FitResult& fit,
                                   const DiagnosticsOptions& options = {});

}  // namespace kda::reference
