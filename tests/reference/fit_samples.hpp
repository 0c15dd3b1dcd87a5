#pragma once

#include "reference/predictor.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kda::tests {

struct Samples {
  std::vector<std::int64_t> lengths;
  std::vector<double> latencies;
};

/// Noise in [-0.5, 0.5), the same bits everywhere (Knuth's 64-bit linear congruence).
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  double operator()() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) * 0x1p-53 - 0.5;
  }

 private:
  std::uint64_t state_;
};

/// f at the lengths plus `noise` ms of noise, each value rounded as IEEE doubles are.
inline Samples sample(std::vector<std::int64_t> lengths, reference::Coefficients f,
                      double noise = 0, std::uint64_t seed = 1) {
  Samples out{std::move(lengths), {}};
  Noise draw(seed);
  for (const std::int64_t length : out.lengths) {
    out.latencies.push_back(f(static_cast<double>(length)) + noise * draw());
  }
  return out;
}

/// first, first + step, ..., `count` lengths behind a first one that the fit drops.
inline std::vector<std::int64_t> ladder(std::int64_t dropped, std::int64_t first, std::int64_t step,
                                        std::int64_t count) {
  std::vector<std::int64_t> out{dropped};
  for (std::int64_t i = 0; i < count; ++i) out.push_back(first + i * step);
  return out;
}

/// What SGLang profiles for a chunk of 6144 on a plain model.
inline Samples profile_6144() {
  return sample(reference::profile_lengths(6144), {2e-7, 0.02, 15.0});
}

/// max |latency|, the size that errors of predictions are measured against.
inline double largest(const std::vector<double>& latencies) {
  double out = 0;
  for (const double latency : latencies) out = std::max(out, std::abs(latency));
  return out;
}

}  // namespace kda::tests
