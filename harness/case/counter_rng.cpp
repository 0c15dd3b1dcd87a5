#include "harness/case/counter_rng.hpp"

#include <bit>

namespace kda::harness {
namespace {

/// FNV-1a, 64 bits.
std::uint64_t hash(std::string_view text) noexcept {
  std::uint64_t h = 0xCBF29CE484222325U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return h;
}

/// The finaliser of SplitMix64: every bit of the result depends on every bit of x.
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

std::uint32_t low(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x >> 32); }

std::array<std::uint32_t, 4> counter(std::int64_t a, std::int64_t b, std::int64_t c,
                                     std::int64_t d) noexcept {
  return {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(d)};
}

double normal_from(std::uint32_t bits, std::uint32_t smooth) noexcept {
  const int ones = std::popcount(bits);  // mean 16, variance 8
  // Two uniform numbers in units of 2^-16: mean 2^16 - 1 together, variance 1/12 each.
  const int uniform = static_cast<int>(smooth & 0xFFFFU) + static_cast<int>(smooth >> 16) - 0xFFFF;
  const double sum = static_cast<double>(ones - 16) + static_cast<double>(uniform) * 0x1p-16;
  constexpr double kInverseDeviation = 0.3499271061118826;  // 1 / sqrt(8 + 2/12)
  return sum * kInverseDeviation;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
  constexpr int kRounds = 10;
  auto [x0, x1, x2, x3] = counter;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * x0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * x2;
    x0 = high(p1) ^ x1 ^ key[0];
    x1 = low(p1);
    x2 = high(p0) ^ x3 ^ key[1];
    x3 = low(p0);
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return {x0, x1, x2, x3};
}

CounterRng::CounterRng(std::uint64_t seed, std::string_view stream) noexcept
    : key_{low(mix(mix(seed) ^ hash(stream))), high(mix(mix(seed) ^ hash(stream)))} {}

double CounterRng::uniform(std::int64_t a, std::int64_t b, std::int64_t c,
                           std::int64_t d) const noexcept {
  const auto x = philox4x32(counter(a, b, c, d), key_);
  const std::uint64_t bits = ((std::uint64_t{x[1]} << 32) | x[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

double CounterRng::normal(std::int64_t a, std::int64_t b, std::int64_t c,
                          std::int64_t d) const noexcept {
  const auto x = philox4x32(counter(a, b, c, d / 2), key_);
  return d % 2 == 0 ? normal_from(x[0], x[1]) : normal_from(x[2], x[3]);
}

void CounterRng::normal_row(std::int64_t a, std::int64_t b, std::int64_t c,
                            std::span<double> out) const noexcept {
  for (std::size_t d = 0; d < out.size(); d += 2) {
    const auto x = philox4x32(counter(a, b, c, static_cast<std::int64_t>(d / 2)), key_);
    out[d] = normal_from(x[0], x[1]);
    if (d + 1 < out.size()) out[d + 1] = normal_from(x[2], x[3]);
  }
}

}  // namespace kda::harness
