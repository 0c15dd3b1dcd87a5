#pragma once

#include "reference/types/dtype.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace kda::reference {

/// What one rounding to a number format costs: at most `unit` times the value, and at most
/// `underflow` whatever the value.
struct Rounding {
  double unit = 0;       ///< unit roundoff u, round to nearest; 0 = exact
  double underflow = 0;  ///< half the smallest subnormal, or the smallest normal number where a
                         ///< kernel may flush to zero

  friend bool operator==(const Rounding&, const Rounding&) = default;
};

inline constexpr Rounding kExact{};
inline constexpr Rounding kRoundBf16{0x1p-8, 0x1p-134};
inline constexpr Rounding kRoundF16{0x1p-11, 0x1p-25};
inline constexpr Rounding kRoundTf32{0x1p-11, 0};
inline constexpr Rounding kRoundBf16Pair{0x1p-16, 0x1p-134};  ///< bf16 high + low part
inline constexpr Rounding kRoundF32{0x1p-24, 0x1p-126};
/// Its underflow is exact: squares of 2^-1022 are nothing in the f64 that they are computed in.
inline constexpr Rounding kRoundF64{0x1p-53, 0};

/// kBf16, kF16, kF32, kF64; kExact for integers.
[[nodiscard]] Rounding rounding_of(Dtype dtype) noexcept;

/// Of the values that the format holds, the largest; infinite for kExact.
[[nodiscard]] double largest(const Rounding& rounding) noexcept;

/// How often the state between tokens is rounded to `Formats::state`.
enum class StateStorage : std::uint8_t { kPerChunk, kPerToken };

/// The number formats of an implementation of KDA, by the place where they round. An
/// implementation states them; nobody derives them from its results.
struct Formats {
  Rounding operands;      ///< u_op: operands of matrix products, other than the next two
  Rounding triangle;      ///< u_tri: T = (I + diag(beta) A)^-1 diag(beta), what it multiplies
  Rounding solve;         ///< u_slv: arithmetic of the triangular solve
  Rounding accumulation;  ///< u_acc: sums, and all arithmetic that is not named here
  Rounding gate;    ///< activation of g, exp, prefix sums of log decays; coarser than the sums
                    ///< (a fast exponential): its errors may all have one sign
  Rounding state;   ///< u_state: the state between chunks, or between tokens
  Rounding output;  ///< u_out: storage of o
  StateStorage state_storage = StateStorage::kPerChunk;
  /// Tokens that the implementation solves for at once, at most kMaxBoundBlock; 0 = chunk_size of
  /// the case. An implementation with smaller chunks is judged with a little more room.
  std::int64_t block = 0;

  friend bool operator==(const Formats&, const Formats&) = default;
};

inline constexpr std::int64_t kMaxBoundBlock = 128;

/// What is assumed of an implementation that states nothing: operands and triangle as q, k and v
/// are stored, a solve in tf32 beside 16-bit operands, the rest f32, o stored as `output`. f32
/// operands: everything f32. f64 operands: everything f64, the output too unless it is narrower.
[[nodiscard]] Formats default_formats(Dtype operands, Dtype output) noexcept;

/// Where an error comes from: the fields of Formats, and values too small for the formats.
enum class ErrorSource : std::uint8_t {
  kOperands,
  kTriangle,
  kSolve,
  kAccumulation,
  kGate,
  kState,
  kOutput,
  kUnderflow,
};

[[nodiscard]] std::span<const ErrorSource> all_error_sources() noexcept;

/// "operands", "triangle", "solve", "accumulation", "gate", "state", "output", "underflow".
[[nodiscard]] std::string_view name(ErrorSource source) noexcept;

/// `formats` with every other source exact. The squares of the deviations that single sources
/// cause add up to the square of the whole deviation (to 1%; with kPerToken the gate and the state
/// may add a little more), which is how a report says what an element's bound is made of.
[[nodiscard]] Formats only(const Formats& formats, ErrorSource source) noexcept;

}  // namespace kda::reference
