#include "reference/predictor.hpp"

#include "reference/fit_double_double.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kda::reference {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt = std::numeric_limits<std::int64_t>::min();
/// Tokens kept free at the end of the context.
constexpr std::int64_t kContextMargin = 100;

std::int64_t saturating_subtract(std::int64_t a, std::int64_t b) noexcept {
  if (b > 0 && a < kMinInt + b) return kMinInt;
  if (b < 0 && a > kMaxInt + b) return kMaxInt;
  return a - b;
}

/// Truncates toward zero, after taking a value within `tolerance` of an integer for that integer.
std::int64_t to_integer(double value, double tolerance) noexcept {
  const double nearest = std::round(value);
  const double whole = std::abs(value - nearest) <= tolerance ? nearest : std::trunc(value);
  if (whole >= 0x1p63) return kMaxInt;
  if (whole <= -0x1p63) return kMinInt;
  return static_cast<std::int64_t>(whole);
}

/// The larger root of a x^2 + (2 a history + b) x - target = 0, a > 0; NaN when there is none.
/// -slope + root cancels for a positive slope, so there the product of the two roots is used. Slope
/// and discriminant are formed in double-double: near 0 they keep the sign of exact arithmetic.
double solve_for_chunk(const Coefficients& f, double history, double target) noexcept {
  const DoubleDouble slope = two_product(2 * f.a, history) + DoubleDouble(f.b);
  // All divided by a power of two near the largest term, so that the squares stay in range.
  const double largest =
      std::max(std::abs(slope.hi), 2 * std::sqrt(f.a) * std::sqrt(std::abs(target)));
  if (largest == 0) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  const auto scaled = [exponent](double value) { return std::ldexp(value, -exponent); };
  const DoubleDouble b(scaled(slope.hi), scaled(slope.lo));
  const DoubleDouble discriminant = b * b + two_product(4 * scaled(f.a), scaled(target));
  const double root = std::sqrt(discriminant.hi);
  return b.hi > 0 ? 2 * scaled(target) / (b.hi + root)
                  : std::ldexp((root - b.hi) / f.a, exponent - 1);
}

}  // namespace

std::string_view name(NoChunkReason reason) noexcept {
  switch (reason) {
    case NoChunkReason::kNotReady: return "not_ready";
    case NoChunkReason::kNoTarget: return "no_target";
    case NoChunkReason::kANotPositive: return "a_not_positive";
    case NoChunkReason::kDiscriminantNegative: return "discriminant_negative";
    case NoChunkReason::kChunkNotPositive: return "chunk_not_positive";
    case NoChunkReason::kBelowAlignment: return "below_alignment";
  }
  return "unknown";
}

ChunkPrediction predict_chunk(const std::optional<Coefficients>& f,
                              std::optional<double> target_latency_ms,
                              const ChunkQuery& query) noexcept {
  const auto none = [](NoChunkReason reason) { return ChunkPrediction{std::nullopt, reason}; };
  if (!f) return none(NoChunkReason::kNotReady);
  if (!target_latency_ms) return none(NoChunkReason::kNoTarget);
  if (!(f->a > 0)) return none(NoChunkReason::kANotPositive);

  const double x = solve_for_chunk(*f, static_cast<double>(query.history_len), *target_latency_ms);
  if (std::isnan(x)) return none(NoChunkReason::kDiscriminantNegative);
  if (x <= 0) return none(NoChunkReason::kChunkNotPositive);

  const auto base = static_cast<double>(query.base_chunk_size);
  const double smoothed = query.smooth_factor == 0 ? base : base + query.smooth_factor * (x - base);
  if (std::isnan(smoothed)) return none(NoChunkReason::kChunkNotPositive);
  const std::int64_t wanted =
      std::max(to_integer(smoothed, 1e-9 * std::abs(base)), query.base_chunk_size / 4);

  const std::int64_t align = chunk_alignment(query.page_size);
  std::int64_t chunk = std::max(wanted / align * align, align);
  const std::int64_t room = saturating_subtract(
      saturating_subtract(query.context_len, query.history_len), kContextMargin);
  chunk = std::min({chunk, room, query.max_chunk_size.value_or(kMaxInt)});
  chunk = chunk / align * align;
  if (chunk < align) return none(NoChunkReason::kBelowAlignment);
  return {chunk, std::nullopt};
}

double chunk_latency(const Coefficients& f, std::int64_t history_len, std::int64_t chunk) noexcept {
  const auto history = static_cast<double>(history_len);
  const auto x = static_cast<double>(chunk);
  return (f.a * (2 * history + x) + f.b) * x;
}

std::vector<std::int64_t> profile_lengths(std::int64_t chunk_size) {
  constexpr int kSamples = 128;
  const double longest = 1.25 * static_cast<double>(chunk_size);
  if (longest > static_cast<double>(kMaxFitLength)) {
    throw Error(ErrorCode::kFitInputInvalid,
                fmt::format("chunk size: wanted 1.25 P <= 2^53, got P = {}", chunk_size));
  }
  const double step = std::floor(longest / kSamples);
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < kSamples; ++i) {
    const double length = longest - i * step;
    if (length < 1) break;
    lengths.push_back(static_cast<std::int64_t>(length));
  }
  return lengths;
}

FitResult ChunkSizePredictor::fit(std::span<const std::int64_t> seq_lens,
                                  std::span<const double> latencies) {
  FitResult result = fit_quadratic(seq_lens, latencies);
  if (result.corrected) {
    coefficients_ = result.corrected;
    target_.reset();
  }
  return result;
}

TargetLatency ChunkSizePredictor::set_target_latency(std::int64_t base_chunk_size) {
  TargetLatency result = target_latency(coefficients_.value_or(Coefficients{}), base_chunk_size);
  if (!result.error) target_ = result.value;
  return result;
}

ChunkPrediction ChunkSizePredictor::predict(const ChunkQuery& query) const noexcept {
  return predict_chunk(coefficients_, target_, query);
}

}  // namespace kda::reference
