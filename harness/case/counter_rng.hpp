#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace kda::harness {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC11): 128 random bits as a pure function of a
/// counter and a key.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key) noexcept;

/// Random numbers addressed by coordinates instead of drawn in order: the number at (a, b, c, d)
/// depends on the seed, the name of the stream and these four, so neither the number of threads nor
/// the extents of a tensor change it. Only integers and correctly rounded IEEE operations follow
/// the generator: the same bits on every machine, compiler and C library.
class CounterRng {
 public:
  CounterRng(std::uint64_t seed, std::string_view stream) noexcept;

  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double uniform(std::int64_t a, std::int64_t b, std::int64_t c,
                               std::int64_t d) const noexcept;

  /// Nearly normal, mean 0, deviation 1, never beyond 6: the number of ones among 32 random bits,
  /// smoothed by two uniform numbers, so that no logarithm or cosine is needed.
  [[nodiscard]] double normal(std::int64_t a, std::int64_t b, std::int64_t c,
                              std::int64_t d) const noexcept;

  /// out[d] = normal(a, b, c, d), at less than half the price.
  void normal_row(std::int64_t a, std::int64_t b, std::int64_t c,
                  std::span<double> out) const noexcept;

 private:
  std::array<std::uint32_t, 2> key_;
};

}  // namespace kda::harness
