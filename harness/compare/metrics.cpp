#include "harness/compare/metrics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kda::harness {
namespace {

constexpr std::uint64_t kFurthest = std::numeric_limits<std::uint64_t>::max();

/// Bits of a float of `width` bits as an integer that counts its values in order; both zeros are 0.
std::int64_t ordinal(std::uint64_t bits, int width) noexcept {
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

/// The value rounded to `dtype`, as an ordinal.
std::int64_t rounded_ordinal(Dtype dtype, double x) noexcept {
  switch (dtype) {
    case Dtype::kBf16: return ordinal(to_bf16(x).bits, 16);
    case Dtype::kF16: return ordinal(to_f16(x).bits, 16);
    case Dtype::kF32: return ordinal(std::bit_cast<std::uint32_t>(static_cast<float>(x)), 32);
    default: return ordinal(std::bit_cast<std::uint64_t>(x), 64);
  }
}

double root_mean(double sum, std::int64_t count) noexcept {
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

}  // namespace

double absolute_error(double expected, double got) noexcept {
  return expected == got ? 0 : std::abs(got - expected);
}

std::uint64_t ulp_distance(Dtype dtype, double expected, double got) noexcept {
  if (expected == got) return 0;
  if (!std::isfinite(expected) || !std::isfinite(got)) return kFurthest;
  const std::int64_t a = rounded_ordinal(dtype, expected);
  const std::int64_t b = rounded_ordinal(dtype, got);
  // Unsigned: the distance between two far-apart f64 values does not fit into 63 bits.
  return a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
               : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
}

void Metrics::add(Dtype dtype, double expected, double got) noexcept {
  ++compared;
  const double magnitude = std::abs(expected);
  if (std::isfinite(expected)) {
    max_expected = std::max(max_expected, magnitude);
    sum_expected2 += expected * expected;
  }
  const double error = absolute_error(expected, got);
  if (error == 0) return;
  max_ulp = std::max(max_ulp, ulp_distance(dtype, expected, got));
  if (!std::isfinite(expected) || !std::isfinite(got)) {
    ++non_finite;
    return;
  }
  max_abs = std::max(max_abs, error);
  if (magnitude > 0) max_rel = std::max(max_rel, error / magnitude);
  sum_error2 += error * error;
}

void Metrics::merge(const Metrics& other) noexcept {
  compared += other.compared;
  bad += other.bad;
  non_finite += other.non_finite;
  max_abs = std::max(max_abs, other.max_abs);
  max_rel = std::max(max_rel, other.max_rel);
  max_ulp = std::max(max_ulp, other.max_ulp);
  max_expected = std::max(max_expected, other.max_expected);
  sum_error2 += other.sum_error2;
  sum_expected2 += other.sum_expected2;
}

double Metrics::rms_expected() const noexcept { return root_mean(sum_expected2, compared); }

double Metrics::rms_ratio() const noexcept {
  if (max_abs == 0) return 0;
  // Squares that left the range of f64 say nothing, and must not say "equal".
  if (sum_error2 == 0 || std::isinf(sum_expected2)) return std::numeric_limits<double>::infinity();
  return std::sqrt(sum_error2 / sum_expected2);
}

double Metrics::bad_share() const noexcept {
  return compared > 0 ? static_cast<double>(bad) / static_cast<double>(compared) : 0;
}

}  // namespace kda::harness
