#pragma once

#include "harness/compare/compare.hpp"
#include "harness/compare/key_counts.hpp"

namespace kda::harness {

/// What judging a tensor needs to know.
struct JudgedCase {
  const Semantics& semantics;
  const Policy& policy;
  const CaseDeviations* deviations = nullptr;  ///< with policies that have `deviations`
  KeyCounts* keys = nullptr;                   ///< beside deviations
  std::int64_t first_head = 0;
};

/// Judges one tensor. Shape and dtype have been checked: both tensors are as shape_of says, of a
/// float dtype.
[[nodiscard]] TensorReport judge_tensor(OutputKind kind, const JudgedCase& judged,
                                        const Tensor& expected, const Tensor& got);

/// judge_tensor(...).passed, stopping at the first block that fails.
[[nodiscard]] bool accepts(OutputKind kind, const JudgedCase& judged, const Tensor& expected,
                           const Tensor& got);

}  // namespace kda::harness
