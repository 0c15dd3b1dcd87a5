#include "reference/fit_diagnostics.hpp"

#include "reference/fit_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace kda::reference {
namespace {

/// A curvature that is not positive at this level is not known to be positive.
constexpr double kCurvatureLevel = 0.01;
constexpr double kDecisiveLeverage = 0.95;
constexpr double kWideTarget = 0.1;  ///< half width of the interval, relative to the target
constexpr std::size_t kMaxOutliersNamed = 5;

constexpr std::array kDoubts{
    FitDoubtInfo{FitDoubt::kFewDistinctLengths, "few_distinct_lengths",
                 "Fewer than 8 distinct lengths are kept."},
    FitDoubtInfo{FitDoubt::kOutlier, "outlier",
                 "A sample lies so far from the fit of the others that chance gives it in fewer "
                 "than 1 of 1000 profiles."},
    FitDoubtInfo{FitDoubt::kDecisiveSample, "decisive_sample",
                 "One sample alone decides the curve (leverage above 0.95): nothing can check it."},
    FitDoubtInfo{
        FitDoubt::kLackOfFit, "lack_of_fit",
        "The residuals follow a pattern (chance: fewer than 1 of 1000): the latency is not "
        "a quadratic of the length."},
    FitDoubtInfo{FitDoubt::kCurvatureUncertain, "curvature_uncertain",
                 "a cannot be told from 0 at the 1 % level, as for a model that is nearly linear."},
    FitDoubtInfo{FitDoubt::kTargetUncertain, "target_uncertain",
                 "The interval of the target latency is wider than 10 % either way."},
    FitDoubtInfo{FitDoubt::kBaseOutsideSamples, "base_outside_samples",
                 "The base chunk size lies outside the kept lengths, so its latency is a guess."},
};

/// Positions of the kept samples in order of length.
std::vector<std::size_t> by_length(std::span<const std::int64_t> lengths) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return lengths[i]; });
  return order;
}

/// Repeated lengths: their scatter is what measurement alone gives (the classical F test).
TestResult test_against_repeats(std::span<const std::int64_t> lengths,
                                std::span<const double> residuals,
                                const std::vector<std::size_t>& order, std::size_t distinct) {
  double pure = 0;
  double all = 0;
  for (const double residual : residuals) all += residual * residual;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    double mean = 0;
    for (; end < order.size() && lengths[order[end]] == lengths[order[first]]; ++end) {
      mean += residuals[order[end]];
    }
    mean /= static_cast<double>(end - first);
    for (; first < end; ++first) {
      const double off = residuals[order[first]] - mean;
      pure += off * off;
    }
  }
  const auto groups = static_cast<double>(distinct);
  const double pure_dof = static_cast<double>(lengths.size()) - groups;
  const double f = ((all - pure) / (groups - 3)) / (pure / pure_dof);
  return {"F test against repeated lengths", f, f_upper_tail(f, groups - 3, pure_dof)};
}

/// Without repeats: residuals of neighbours in length resemble each other when the curve is wrong.
/// Ratio of mean squared difference to variance (von Neumann 1941), normal for n >= 8 or so.
TestResult test_neighbours(std::span<const double> residuals,
                           const std::vector<std::size_t>& order) {
  double differences = 0;
  double squares = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    squares += residuals[order[i]] * residuals[order[i]];
    if (i == 0) continue;
    const double step = residuals[order[i]] - residuals[order[i - 1]];
    differences += step * step;
  }
  const auto n = static_cast<double>(order.size());
  const double ratio = differences / squares;
  const double z = (ratio / 2 - 1) * std::sqrt((n * n - 1) / (n - 2));
  return {"von Neumann ratio of residuals in order of length", ratio, normal_lower_tail(z)};
}

void find_intervals(Diagnostics& out, const DiagnosticsOptions& options) {
  const auto interval = [&](auto number) {
    return percentile_interval(out.bootstrap, options.confidence, number);
  };
  out.a = interval([](const Coefficients& f) { return f.a; });
  out.b = interval([](const Coefficients& f) { return f.b; });
  out.c = interval([](const Coefficients& f) { return f.c; });
  if (!options.base_chunk_size) return;
  const std::int64_t base = *options.base_chunk_size;
  out.target =
      interval([base](const Coefficients& f) { return target_latency(corrected(f), base).value; });
}

void doubt_samples(Diagnostics& out) {
  if (out.distinct_lengths < kMinFitSamples) {
    out.doubts.push_back({FitDoubt::kFewDistinctLengths,
                          fmt::format("only {} distinct lengths are kept; 8 or more spread-out "
                                      "lengths make a quadratic",
                                      out.distinct_lengths)});
  }
  std::vector<Influence> outliers;
  std::ranges::copy_if(out.influence, std::back_inserter(outliers),
                       [](const Influence& one) { return one.outlier_p < kOutlierLevel; });
  std::ranges::stable_sort(outliers, std::ranges::greater{},
                           [](const Influence& one) { return std::abs(one.studentised); });
  outliers.resize(std::min(outliers.size(), kMaxOutliersNamed));
  for (const Influence& one : outliers) {
    out.doubts.push_back(
        {FitDoubt::kOutlier,
         fmt::format("sample {} (length {}, {:.6g} ms) is {:+.6g} ms off the fit of the others, "
                     "{:.1f} standard errors; without it a={:.3e}, b={:.3e}, c={:.3e}",
                     one.index, one.length, one.latency, one.deleted_residual,
                     std::abs(one.studentised), one.without.a, one.without.b, one.without.c)});
  }
  for (const Influence& one : out.influence) {
    if (one.leverage <= kDecisiveLeverage) continue;
    out.doubts.push_back(
        {FitDoubt::kDecisiveSample,
         fmt::format("sample {} (length {}, {:.6g} ms) decides the curve by itself "
                     "(leverage {:.3f}); profile more lengths near it",
                     one.index, one.length, one.latency, one.leverage)});
  }
}

void doubt_curve(Diagnostics& out, const FitResult& fit, const DiagnosticsOptions& options) {
  if (out.lack_of_fit && out.lack_of_fit->p < kOutlierLevel) {
    out.doubts.push_back(
        {FitDoubt::kLackOfFit,
         fmt::format("the residuals follow a pattern ({}: {:.3g}, p={:.1e}); "
                     "the latency is not a quadratic of the length",
                     out.lack_of_fit->method, out.lack_of_fit->statistic, out.lack_of_fit->p)});
  }
  if (out.curvature && !(out.curvature->p <= kCurvatureLevel)) {
    out.doubts.push_back(
        {FitDoubt::kCurvatureUncertain,
         fmt::format(
             "a={:.3e} with standard error {:.1e} cannot be told from 0 (p={:.2g}); a model "
             "that is nearly linear wants a fixed chunk size",
             fit.raw->a, fit.quality->standard_errors.a, out.curvature->p)});
  }
  if (!fit.corrected || !options.base_chunk_size) return;
  const double target = target_latency(*fit.corrected, *options.base_chunk_size).value;
  if (out.target && !(out.target->high - out.target->low <= 2 * kWideTarget * target)) {
    out.doubts.push_back({FitDoubt::kTargetUncertain,
                          fmt::format("target {:.4g} ms lies somewhere in {:.4g} ... {:.4g} ms",
                                      target, out.target->low, out.target->high)});
  }
}

}  // namespace

std::span<const FitDoubtInfo> all_fit_doubts() noexcept { return kDoubts; }

std::string_view name(FitDoubt doubt) noexcept {
  return kDoubts[static_cast<std::size_t>(doubt)].name;
}

Diagnostics diagnose(std::span<const std::int64_t> seq_lens, std::span<const double> latencies,
                     const FitResult& fit, const DiagnosticsOptions& options) {
  Diagnostics out;
  if (!fit.quality || !fit.raw) return out;
  const auto lengths = seq_lens.subspan(1);
  const auto order = by_length(lengths);
  out.distinct_lengths = 1;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (lengths[order[i]] != lengths[order[i - 1]]) ++out.distinct_lengths;
  }
  out.bootstrap = bootstrap_fit(seq_lens, latencies, options.bootstrap);
  find_intervals(out, options);
  out.influence = leave_one_out(seq_lens, latencies, *fit.raw, *fit.quality);

  double largest = 0;
  for (const double latency : latencies.subspan(1)) largest = std::max(largest, std::abs(latency));
  const auto n = static_cast<double>(lengths.size());
  const FitQuality& quality = *fit.quality;
  if (quality.residual_sd > kRoundingShare * largest) {
    const double t = fit.raw->a / quality.standard_errors.a;
    out.curvature = TestResult{"t test of a", t, student_t_upper_tail(t, n - 3)};
    const bool repeats = out.distinct_lengths < lengths.size();
    if (repeats && out.distinct_lengths > 3) {
      out.lack_of_fit =
          test_against_repeats(lengths, quality.residuals, order, out.distinct_lengths);
    } else if (!repeats) {
      out.lack_of_fit = test_neighbours(quality.residuals, order);
    }
  }
  doubt_samples(out);
  doubt_curve(out, fit, options);
  if (options.base_chunk_size) {
    const std::int64_t base = *options.base_chunk_size;
    const std::int64_t low = lengths[order.front()];
    const std::int64_t high = lengths[order.back()];
    if (base < low || base > high) {
      out.doubts.push_back(
          {FitDoubt::kBaseOutsideSamples,
           fmt::format("base chunk size {} lies outside the kept lengths {} ... {}", base, low,
                       high)});
    }
  }
  return out;
}

}  // namespace kda::reference
