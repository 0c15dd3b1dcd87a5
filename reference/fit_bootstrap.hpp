#pragma once

#include "reference/fit.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace kda::reference {

struct BootstrapOptions {
  std::size_t resamples = 10000;
  std::uint64_t seed = 1;
  unsigned threads = 0;  ///< 0: as many as the machine has; the answer does not depend on it
};

/// Pairs bootstrap: the kept samples drawn with replacement and fitted again.
struct Bootstrap {
  std::vector<Coefficients> raw;    ///< of each resample that could be solved, in order of the draw
  std::size_t unsolved = 0;         ///< resamples of fewer than 3 distinct lengths
  double share_a_not_positive = 0;  ///< of the solved ones; near 0.5 the sign of a is a coin toss
};

/// Wants samples that fit_quadratic solves (`raw` there), else returns an empty result. The draws
/// are a function of (seed, resample, position) alone, so any run and any thread count gives the
/// same bits. Each resample is solved in f64.
[[nodiscard]] Bootstrap bootstrap_fit(std::span<const std::int64_t> seq_lens,
                                      std::span<const double> latencies,
                                      const BootstrapOptions& options = {});

struct Interval {
  double low = 0;
  double high = 0;
};

/// Equal-tailed percentile interval of a number computed from each resample, for example
/// [](const Coefficients& f) { return f.a; }. Nothing when there are no resamples.
[[nodiscard]] std::optional<Interval> percentile_interval(
    const Bootstrap& bootstrap, double confidence,
    const std::function<double(const Coefficients&)>& number);

/// A coefficient set as the predictor would use it: b is 0 where it is negative.
[[nodiscard]] constexpr Coefficients corrected(Coefficients raw) {
  if (raw.b < 0) raw.b = 0;
  return raw;
}

}  // namespace kda::reference
