#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kda::harness {

/// Of a non-empty sample.
[[nodiscard]] double median(std::span<const double> sample);

/// Two-sided Mann-Whitney U test of "both samples come from one distribution".
struct MannWhitney {
  double u = 0;  ///< pairs in which the second sample's value is the larger; ties count half
  double p = 1;
};

/// Exact for samples without ties of up to 30 each, else the normal approximation with corrections
/// for ties and continuity. Neither sample may be empty.
[[nodiscard]] MannWhitney mann_whitney(std::span<const double> first,
                                       std::span<const double> second);

/// How far apart the medians of two samples like this one lie: what |log(median / median)| stays
/// under in 95 of 100 cases. From the median absolute deviation of the logarithms, which single
/// disturbed values leave alone. All values must be positive.
[[nodiscard]] double median_band(std::span<const double> sample);

/// The next of a sequence of 64-bit numbers (splitmix64); `state` is its own seed.
[[nodiscard]] std::uint64_t next_random(std::uint64_t& state);

}  // namespace kda::harness
