#pragma once

#include "reference/fit.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kda::reference {

/// Why a prediction has no answer, in the order in which the reasons are checked. The names are
/// stable: fixtures and reports hold them.
enum class NoChunkReason : std::uint8_t {
  kNotReady,              ///< no coefficients
  kNoTarget,              ///< no target latency
  kANotPositive,          ///< a <= 0, or NaN
  kDiscriminantNegative,  ///< no real root (a given target may be negative), or NaN
  kChunkNotPositive,      ///< root <= 0, or NaN after smoothing
  kBelowAlignment,        ///< what context and cap leave is under one alignment unit
};

/// "not_ready", "no_target", "a_not_positive", "discriminant_negative", "chunk_not_positive",
/// "below_alignment".
[[nodiscard]] std::string_view name(NoChunkReason reason) noexcept;

/// One question: the next chunk of a prompt of which `history_len` tokens are done. All in tokens.
struct ChunkQuery {
  std::int64_t history_len = 0;
  std::int64_t base_chunk_size = 0;
  std::int64_t page_size = 64;
  std::int64_t context_len = 0;
  std::optional<std::int64_t> max_chunk_size = std::nullopt;
  double smooth_factor = 0.75;  ///< 0 keeps the base, 1 takes the root as it is
};

/// The answer: a chunk size or a reason, never both and never neither.
struct ChunkPrediction {
  std::optional<std::int64_t> chunk_size;
  std::optional<NoChunkReason> none;
};

/// Chunks are multiples of this many tokens: max(page_size, 64).
[[nodiscard]] constexpr std::int64_t chunk_alignment(std::int64_t page_size) {
  return page_size > 64 ? page_size : 64;
}

/// The x with f(history + x) - f(history) = target, smoothed towards the base, not below base / 4,
/// aligned down, capped by context and maximum, aligned down again.
///
/// The root is that of a x^2 + (2 a L + b) x - target = 0 in the form that does not cancel; a
/// smoothed size within 1e-9 base of an integer counts as that integer, so the answer is that of
/// exact arithmetic. Any integers are safe: sums saturate. Never throws.
[[nodiscard]] ChunkPrediction predict_chunk(const std::optional<Coefficients>& f,
                                            std::optional<double> target_latency_ms,
                                            const ChunkQuery& query) noexcept;

/// f(history + chunk) - f(history), ms: what a chunk costs without the fixed cost c.
[[nodiscard]] double chunk_latency(const Coefficients& f, std::int64_t history_len,
                                   std::int64_t chunk) noexcept;

/// The lengths that SGLang profiles for a chunk size P: int(1.25 P - i (1.25 P // 128)) for
/// i = 0 ... 127, stopping at <= 0. For P <= 102 the step is 0 and all 128 lengths are equal, which
/// no fit accepts. Throws kFitInputInvalid when 1.25 P is over 2^53.
[[nodiscard]] std::vector<std::int64_t> profile_lengths(std::int64_t chunk_size);

/// Fit, target and prediction as a scheduler uses them.
class ChunkSizePredictor {
 public:
  /// Fits and, only on success, takes over the corrected coefficients. The target belongs to the
  /// coefficients that it was computed from, so a success clears it. A failure, also an exception,
  /// changes nothing.
  [[nodiscard]] FitResult fit(std::span<const std::int64_t> seq_lens,
                              std::span<const double> latencies);

  /// Takes over a target on success; kFitTargetLatencyNotPositive changes nothing. Without
  /// coefficients the target is 0, hence that error.
  [[nodiscard]] TargetLatency set_target_latency(std::int64_t base_chunk_size);

  [[nodiscard]] ChunkPrediction predict(const ChunkQuery& query) const noexcept;

  [[nodiscard]] const std::optional<Coefficients>& coefficients() const noexcept {
    return coefficients_;
  }
  [[nodiscard]] std::optional<double> target() const noexcept { return target_; }

 private:
  std::optional<Coefficients> coefficients_;
  std::optional<double> target_;  ///< ms
};

}  // namespace kda::reference
