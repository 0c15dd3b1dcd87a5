#pragma once

#include "harness/base/verdict.hpp"
#include "harness/bench/bench_file.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

enum class SpeedVerdict : std::uint8_t { kFaster, kSlower, kSame, kNone };

/// "faster", "slower", "same", "no verdict".
[[nodiscard]] std::string_view name(SpeedVerdict verdict) noexcept;

/// One benchmark in two files. Numbers are there as far as they exist.
struct SpeedLine {
  std::string name;
  SpeedVerdict verdict = SpeedVerdict::kNone;
  std::string reason;                 ///< why there is no verdict
  bool broke = false;                 ///< had times in the base and ends in an error now
  std::optional<double> base_median;  ///< seconds
  std::optional<double> new_median;
  std::optional<double> ratio;  ///< new over base
  std::optional<double> p;      ///< Mann-Whitney, two-sided
  std::optional<double> band;   ///< |log ratio| of equal programs
  std::size_t base_repetitions = 0;
  std::size_t new_repetitions = 0;
};

struct SpeedComparison {
  std::string base;
  std::string changed;
  std::string band_source;         ///< "repetitions" or "A/A run"
  std::vector<std::string> notes;  ///< on the files as a whole
  std::vector<SpeedLine> lines;

  [[nodiscard]] std::size_t count(SpeedVerdict verdict) const;
  /// kFailed when a line is slower or broke, kUnavailable when no line has a verdict.
  [[nodiscard]] Exit exit_status() const;
};

/// How a line is judged. A difference is one when the U test says so and it is larger than the band
/// (and than the least effect); lines without one are the same where the band is narrow enough to
/// have shown it.
struct SpeedRule {
  std::size_t repetitions = 5;  ///< wanted of each side; 4 against 4 cannot reach `alpha`
  double alpha = 0.01;
  double widest_band = 0.04;       ///< beyond it nothing is called the same,
  double beyond_wide = 3;          ///< and a difference has to be this many bands
  double least_effect_aa = 0.02;   ///< with a band that an A/A run showed
  double least_effect_own = 0.05;  ///< without: two runs differ by more than repetitions of one
};

/// Judges every line of either file. `again` is a second run of the base's program, on the same
/// machine at the same time. Throws kBenchFileInvalid when only one of the files is kdacheck's.
[[nodiscard]] SpeedComparison compare_speed(const BenchFile& base, const BenchFile& changed,
                                            const BenchFile* again = nullptr,
                                            const SpeedRule& rule = {});

/// A table, slower lines last where they are seen, and a line of counts.
[[nodiscard]] std::string to_text(const SpeedComparison& comparison);

/// Format "kdacheck-bench-comparison", version 1, kind "times".
[[nodiscard]] nlohmann::json to_json(const SpeedComparison& comparison);

}  // namespace kda::harness
