#pragma once

#include "reference/rounding.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kda::tests {

/// Formats that an honest kernel rounds to, each to nearest even.
enum class Round : std::uint8_t { kNone, kBf16, kF16, kBf16Pair };

/// What the triangular system of a chunk is used for.
enum class ChunkForm : std::uint8_t {
  kT,   ///< U = T (v - (k E) S)
  kWY,  ///< U = (T v) - (T (k E)) S, both products rounded as operands
};

/// A right implementation of KDA that computes in f32, rounds operands of matrix products as
/// tensor cores need them, and says so: what a bound must accept. chunk = 1: token by token.
struct HonestKernel {
  std::string name;
  std::int64_t chunk = 64;
  ChunkForm form = ChunkForm::kT;
  Round operands = Round::kBf16;
  Round triangle = Round::kBf16;  ///< T and what it multiplies
  Round state = Round::kNone;     ///< the state after each chunk
  Dtype output = Dtype::kBf16;    ///< of o
};

/// o in `kernel.output`, states in f32.
[[nodiscard]] Outputs run(const HonestKernel& kernel, const Problem& problem,
                          const Semantics& semantics);

/// The formats that such a kernel states. Where a kernel states nothing: default_formats.
[[nodiscard]] reference::Formats formats_of(const HonestKernel& kernel);

/// Chunks of 16, 32 and 64, T and WY form, bf16 and f16 operands, T in two parts, bf16 state by
/// chunk and by token, f32 by chunk and by token.
[[nodiscard]] std::vector<HonestKernel> honest_kernels();

}  // namespace kda::tests
