#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/fit_batch_params.hpp"
#include "cuda/kernels/fit_real.hpp"

#include <cstdint>

// The samples of one fit, as its warp sees them: which ones, whether they can be used, their range.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

inline constexpr int kLanes = 32;

/// Draws of one resample of the pairs bootstrap, a function of (seed, resample, position) alone:
/// SplitMix64's output function (Steele, Lea, Flood 2014) on counters.
struct Draws {
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
  std::uint64_t key;

  KDA_DEVICE static std::uint64_t scatter(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  KDA_DEVICE static Draws of(std::uint64_t seed, std::int64_t resample) {
    return {
        scatter(scatter(seed + kGolden) + kGolden * (static_cast<std::uint64_t>(resample) + 1))};
  }
  /// One of 0 ... n - 1, n < 2^32.
  KDA_DEVICE std::int64_t draw(std::int64_t position, std::int64_t n) const {
    const std::uint64_t bits =
        scatter(key + kGolden * (static_cast<std::uint64_t>(position) + 1)) >> 32;
    return static_cast<std::int64_t>((bits * static_cast<std::uint64_t>(n)) >> 32);
  }
};

/// All samples of a profile but the first, or as many drawn from them with replacement.
struct FitSamples {
  device::Global<const std::int64_t> lengths;
  device::Global<const double> latencies;
  std::int64_t count;
  bool resampled;
  Draws draws;

  KDA_DEVICE std::int64_t place(std::int64_t i) const {
    return resampled ? draws.draw(i, count) : i;
  }
};

KDA_DEVICE FitSamples samples_of(const FitParams& p, std::int64_t fit) {
  const bool resampled = p.resamples > 0;
  const std::int64_t profile = resampled ? fit / p.resamples : fit;
  const std::int64_t kept = device::load(p.offsets, profile) + 1;
  const std::int64_t end = device::load(p.offsets, profile + 1);
  return {p.seq_lens + kept, p.latencies + kept, end - kept, resampled,
          Draws::of(p.seed, resampled ? fit % p.resamples : 0)};
}

/// What one pass over the samples finds out.
struct Survey {
  static constexpr std::int64_t kMaxLength = std::int64_t{1} << 53;
  std::int64_t low = kMaxLength + 1;
  std::int64_t high = 0;
  bool third = false;  ///< some length lies strictly between the two
  bool usable = true;
  double max_latency = 0;

  KDA_DEVICE void see(std::int64_t length, double latency) {
    // Comparisons with NaN are false.
    usable = usable && magnitude(latency) <= 0x1.fffffffffffffp1023 && length > 0 &&
             length <= kMaxLength;
    merge({length, length, false, true, magnitude(latency)});
  }

  KDA_DEVICE void merge(const Survey& other) {
    const std::int64_t least = low < other.low ? low : other.low;
    const std::int64_t most = high > other.high ? high : other.high;
    const auto between = [&](std::int64_t x) { return least < x && x < most; };
    // Nothing seen yet is low > high, and no length.
    third = third || other.third || (low <= high && (between(low) || between(high))) ||
            (other.low <= other.high && (between(other.low) || between(other.high)));
    low = least;
    high = most;
    usable = usable && other.usable;
    max_latency = max_latency < other.max_latency ? other.max_latency : max_latency;
  }

  KDA_DEVICE void merge_warp() {
    KDA_NO_UNROLL
    for (int step = 1; step < kLanes; step *= 2) {
      merge({device::shuffle_xor(low, step), device::shuffle_xor(high, step),
             device::shuffle_xor(third ? 1 : 0, step) != 0,
             device::shuffle_xor(usable ? 1 : 0, step) != 0,
             device::shuffle_xor(max_latency, step)});
    }
  }
};

KDA_DEVICE Survey survey(const FitSamples& samples, int lane) {
  Survey all;
  for (std::int64_t i = lane; i < samples.count; i += kLanes) {
    const std::int64_t at = samples.place(i);
    all.see(device::load(samples.lengths, at), device::load(samples.latencies, at));
  }
  all.merge_warp();
  return all;
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
