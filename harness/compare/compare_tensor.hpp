#pragma once

#include "harness/compare/compare.hpp"
#include "harness/compare/compare_terms.hpp"

namespace kda::harness {

/// What judging needs to know of the case.
struct JudgedCase {
  const Problem& problem;
  const Semantics& semantics;
  const Policy& policy;
  CaseTerms& terms;
};

/// Judges one tensor. Shape and dtype have been checked: both tensors are as shape_of says, of a
/// float dtype.
[[nodiscard]] TensorReport judge_tensor(OutputKind kind, const JudgedCase& judged,
                                        const Tensor& expected, const Tensor& got);

}  // namespace kda::harness
