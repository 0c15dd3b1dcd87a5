#pragma once

#include "reference/rounding.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kda::harness {

/// What an implementation states of its number formats. What it leaves out follows from the case:
/// operands and triangle as q is stored, a solve in tf32 beside 16-bit operands, o in the dtype of
/// v, the rest f32. Stated, never derived from a result: a wrong kernel would choose its own bound.
struct StatedFormats {
  std::optional<reference::Rounding> operands;
  std::optional<reference::Rounding> triangle;
  std::optional<reference::Rounding> solve;
  std::optional<reference::Rounding> accumulation;
  std::optional<reference::Rounding> gate;
  std::optional<reference::Rounding> state;
  std::optional<reference::Rounding> output;
  reference::StateStorage state_storage = reference::StateStorage::kPerChunk;
  std::int64_t block = 0;  ///< tokens solved for at once; 0 = chunk_size of the case

  friend bool operator==(const StatedFormats&, const StatedFormats&) = default;
};

/// Everything in f32 but o, which has the dtype of v.
[[nodiscard]] StatedFormats f32_formats();

/// Of the prefill kernel and its peer: 64 tokens solved for at once, T and R in two bf16 parts.
[[nodiscard]] StatedFormats prefill_formats();

/// A comma-separated list of PLACE=FORMAT with operands, triangle, solve, accumulation, gate,
/// state or output, and bf16, f16, tf32, bf16x2 (a bf16 pair), f32 or f64; state=FORMAT/token where
/// the state is stored after every token; block=N. A format alone stands for operands=FORMAT.
/// Throws kFormatsInvalid: wanted, got.
[[nodiscard]] StatedFormats parse_formats(std::string_view text);

/// As parse_formats reads it; empty when nothing is stated.
[[nodiscard]] std::string to_string(const StatedFormats& stated);

/// With what the case adds.
[[nodiscard]] reference::Formats formats_of(const StatedFormats& stated, const Problem& problem);

/// Every place: "operands=bf16,triangle=bf16,solve=tf32,...".
[[nodiscard]] std::string to_string(const reference::Formats& formats);

}  // namespace kda::harness
