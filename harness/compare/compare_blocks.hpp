#pragma once

#include "harness/compare/window.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <vector>

namespace kda::harness {

/// The part of a tensor that one (sequence, value head) of `o`, or one state matrix, makes up, as
/// [rows, cols] views: tokens x value columns, or key channels x value columns in either layout.
struct Block {
  Place origin;         ///< place of element (0, 0), as reports name it
  std::int64_t hv = 0;  ///< value head as the tensors count it
  TensorView expected;
  TensorView got;
  TensorView sigma;         ///< deviations; no data where there are none
  std::int64_t tokens = 0;  ///< o: length of the sequence; states: tokens that they have seen

  [[nodiscard]] std::int64_t rows() const { return expected.shape[0]; }
  [[nodiscard]] std::int64_t cols() const { return expected.shape[1]; }
  [[nodiscard]] Place place(std::int64_t row, std::int64_t col) const;
  /// Position of an element in the tensors.
  [[nodiscard]] std::int64_t offset(std::int64_t row, std::int64_t col) const {
    return first + row * expected.strides[0] + col * expected.strides[1];
  }

  std::int64_t first = 0;  ///< position of element (0, 0) in the tensors
};

/// The tensors that blocks are parts of, dense and of the same shape.
struct BlockTensors {
  const Tensor& expected;
  const Tensor& got;
  const Tensor* sigma = nullptr;
};

/// Shape that the tensor must have.
[[nodiscard]] Shape shape_of(OutputKind kind, const Semantics& semantics);

/// o, and final_state and h where the case asks for them.
[[nodiscard]] std::vector<OutputKind> wanted_outputs(const Semantics& semantics);

/// Every block, in the order sequence (h: chunk), head. Rows of `o` that belong to no sequence are
/// in none. The tensors must have shape_of(kind, semantics) and outlive the blocks. Places count
/// heads from `first_head`.
[[nodiscard]] std::vector<Block> blocks_of(OutputKind kind, const Semantics& semantics,
                                           const BlockTensors& tensors,
                                           std::int64_t first_head = 0);

}  // namespace kda::harness
