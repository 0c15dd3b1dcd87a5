#pragma once

#include "reference/types/problem.hpp"

namespace kda::harness {

/// What an honest chunk kernel returns: 64-token chunks, every operand of a product rounded once to
/// `operands`, sums and states in f32, o in the dtype of v. Written for the comparator's tests
/// only.
[[nodiscard]] Outputs chunk_kernel(const Problem& problem, const Semantics& semantics,
                                   Dtype operands);

}  // namespace kda::harness
