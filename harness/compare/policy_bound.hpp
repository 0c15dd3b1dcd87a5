#pragma once

#include "reference/types/dtype.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kda::harness {

/// Half the distance from 1 to the next number: 2^-8 for bf16, 2^-53 for f64.
[[nodiscard]] double unit_roundoff(Dtype dtype) noexcept;

/// The number formats that a result had to go through.
struct Formats {
  Dtype operands = Dtype::kBf16;  ///< of q, k, v: products may round their operands to it
  Dtype result = Dtype::kBf16;    ///< stored result
  Dtype expected = Dtype::kF64;   ///< stored expected values
  std::int64_t tokens = 0;        ///< length of the sequence
  /// Of the keys that a row depends on, by row; a single value is for all rows (CaseTerms).
  std::vector<double> overlap;
};

/// Standard deviation of the rounding error of every element of a [rows, cols] piece of a tensor
/// (tokens x value columns of `o`, key channels x value columns of a state), row-major. It depends
/// on the case and its exact results, never on the result under judgement.
///
/// This is a plain stand-in: constants from counting roundings, not a derivation that follows the
/// errors through the recurrence. Where keys nearly coincide while beta is near or above 1, and
/// where large states cancel, it can be too strict for kernels that round every operand once to 16
/// bits.
///
/// `terms` [rows, cols]: size of the terms that were added up (a sum may cancel).
/// `mixing`: every row is judged as if it had at least this share of the typical size of a row.
/// Non-finite expected values count as 0.
[[nodiscard]] std::vector<double> rounding_deviation(std::span<const double> expected,
                                                     std::span<const double> terms,
                                                     std::int64_t cols, double mixing,
                                                     const Formats& formats);

}  // namespace kda::harness
