#include "harness/bench/bench_compare.hpp"

#include "harness/bench/statistics.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Says so where a difference of the files makes ratios of times mean less.
void compare_contexts(SpeedComparison& comparison, const BenchFile& base,
                      const BenchFile& changed) {
  const bool base_ours = base.context.contains("kdacheck_bench");
  const bool new_ours = changed.context.contains("kdacheck_bench");
  if (base_ours != new_ours) {
    throw Error(ErrorCode::kBenchFileInvalid,
                (base_ours ? changed : base).path +
                    ": expected a file of kdacheck bench like the other one, got one of another "
                    "tool (context has no kdacheck_bench)");
  }
  if (!base_ours) comparison.notes.emplace_back("neither file was written by kdacheck bench");
  for (const char* key : {"host_name", "cpu", "gpu", "driver", "num_cpus", "library_build_type",
                          "compiler", "build_flags", "quick"}) {
    const std::string a = base.context_or(key, "not given");
    const std::string b = changed.context_or(key, "not given");
    if (a != b) comparison.notes.push_back(fmt::format("{} differs: {} | {}", key, a, b));
  }
}

/// Why these two cannot be compared; empty when they can.
std::string obstacle(const BenchLine* a, const BenchLine* b, const SpeedRule& rule) {
  if (a == nullptr) return "only in NEW";
  if (b == nullptr) return "only in BASE";
  for (const auto& [side, line] : {std::pair{"BASE", a}, std::pair{"NEW", b}}) {
    if (!line->problem.empty()) {
      const char* kind = line->skipped ? "skipped: " : (line->failed ? "error: " : "");
      return fmt::format("{}: {}{}", side, kind, line->problem);
    }
  }
  if (a->seconds.size() < rule.repetitions || b->seconds.size() < rule.repetitions) {
    return fmt::format("too few repetitions: wanted {} of each, got {} and {}", rule.repetitions,
                       a->seconds.size(), b->seconds.size());
  }
  return {};
}

double band_of(const BenchLine& a, const BenchLine& b, const BenchLine* again) {
  double band = std::max(median_band(a.seconds), median_band(b.seconds));
  if (again != nullptr)
    band = std::max(band, std::abs(std::log(median(again->seconds) / median(a.seconds))));
  return band;
}

void judge(SpeedLine& line, double least_effect, const SpeedRule& rule) {
  const double effect = std::log(*line.ratio);
  const double band = *line.band;
  const bool wide = !(band < rule.widest_band);
  const double threshold = std::max(wide ? rule.beyond_wide * band : band, least_effect);
  if (*line.p <= rule.alpha && std::abs(effect) > threshold) {
    line.verdict = effect > 0 ? SpeedVerdict::kSlower : SpeedVerdict::kFaster;
  } else if (wide) {
    line.reason =
        fmt::format("too noisy: equal programs differ by {:.1f}% here, wanted under {:.0f}%",
                    100 * std::expm1(band), 100 * rule.widest_band);
  } else {
    line.verdict = SpeedVerdict::kSame;
  }
}

SpeedLine compare_line(const std::string& name, const BenchLine* a, const BenchLine* b,
                       const BenchFile* again_file, const SpeedRule& rule) {
  SpeedLine line;
  line.name = name;
  if (a != nullptr) line.base_repetitions = a->seconds.size();
  if (b != nullptr) line.new_repetitions = b->seconds.size();
  line.reason = obstacle(a, b, rule);
  line.broke = a != nullptr && a->problem.empty() && b != nullptr && b->failed;
  if (a != nullptr && !a->seconds.empty()) line.base_median = median(a->seconds);
  if (b != nullptr && !b->seconds.empty()) line.new_median = median(b->seconds);
  if (line.base_median && line.new_median) line.ratio = *line.new_median / *line.base_median;
  if (a == nullptr || b == nullptr || !line.reason.empty()) return line;
  const BenchLine* again = again_file != nullptr ? again_file->find(name) : nullptr;
  if (again != nullptr && (!again->problem.empty() || again->seconds.empty())) again = nullptr;
  if (again_file != nullptr && again == nullptr) {
    line.reason = "the A/A run has no times of it";
    return line;
  }
  line.p = mann_whitney(a->seconds, b->seconds).p;
  line.band = band_of(*a, *b, again);
  judge(line, again != nullptr ? rule.least_effect_aa : rule.least_effect_own, rule);
  return line;
}

}  // namespace

std::string_view name(SpeedVerdict verdict) noexcept {
  switch (verdict) {
    case SpeedVerdict::kFaster: return "faster";
    case SpeedVerdict::kSlower: return "slower";
    case SpeedVerdict::kSame: return "same";
    case SpeedVerdict::kNone: return "no verdict";
  }
  return "?";
}

std::size_t SpeedComparison::count(SpeedVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(lines, verdict, &SpeedLine::verdict));
}

Exit SpeedComparison::exit_status() const {
  if (count(SpeedVerdict::kSlower) != 0 || std::ranges::any_of(lines, &SpeedLine::broke))
    return Exit::kFailed;
  return count(SpeedVerdict::kNone) == lines.size() ? Exit::kUnavailable : Exit::kSuccess;
}

SpeedComparison compare_speed(const BenchFile& base, const BenchFile& changed,
                              const BenchFile* again, const SpeedRule& rule) {
  SpeedComparison comparison;
  comparison.base = base.path;
  comparison.changed = changed.path;
  comparison.band_source = again != nullptr ? "A/A run" : "repetitions";
  compare_contexts(comparison, base, changed);
  for (const BenchLine& line : base.lines) {
    comparison.lines.push_back(
        compare_line(line.name, &line, changed.find(line.name), again, rule));
  }
  for (const BenchLine& line : changed.lines) {
    if (base.find(line.name) == nullptr)
      comparison.lines.push_back(compare_line(line.name, nullptr, &line, again, rule));
  }
  return comparison;
}

}  // namespace kda::harness
