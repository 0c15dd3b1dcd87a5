#pragma once

#include "harness/compare/window.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <vector>

namespace kda::harness {

/// The part of a tensor that one (sequence, value head) of `o`, or one state matrix, makes up, as
/// [rows, cols] views: tokens x value columns, or key channels x value columns in either layout.
struct Block {
  Place origin;  ///< place of element (0, 0)
  TensorView expected;
  TensorView got;
  std::int64_t tokens = 0;         ///< length of the sequence
  std::int64_t chunks_before = 0;  ///< states: chunks of the sequence that it has seen

  [[nodiscard]] std::int64_t rows() const { return expected.shape[0]; }
  [[nodiscard]] std::int64_t cols() const { return expected.shape[1]; }
  [[nodiscard]] Place place(std::int64_t row, std::int64_t col) const;
};

/// Shape that the tensor must have.
[[nodiscard]] Shape shape_of(OutputKind kind, const Semantics& semantics);

/// Every block, in the order sequence (h: chunk), head. Rows of `o` that belong to no sequence are
/// in none. Both tensors must have shape_of(kind, semantics) and outlive the blocks.
[[nodiscard]] std::vector<Block> blocks_of(OutputKind kind, const Semantics& semantics,
                                           const Tensor& expected, const Tensor& got);

}  // namespace kda::harness
