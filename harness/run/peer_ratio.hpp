#pragma once

#include "harness/run/judge.hpp"

#include <vector>

namespace kda::harness {

/// Fills in how the RMS errors of results of one case compare with those of the peer of their
/// precision, where that was judged too: peer-f32 beside f32 operands, else peer-bf16. A number to
/// look at, never part of a verdict: between two honest kernels it moves from 0.2 to 3.
void compare_with_peers(std::vector<CaseResult>& results);

}  // namespace kda::harness
