#pragma once

#include "cuda/prefill.hpp"
#include "reference/types/problem.hpp"

#include <cstddef>

// The rules that the C++ interface adds to its contract. Private to cuda/.

namespace kda::cuda {

/// Contract and own rules, in order; no memory but cu_seqlens is read.
[[nodiscard]] Semantics validate_prefill(const PrefillArgs& args);

/// kNullPointer, kMisalignedPointer, kWorkspaceTooSmall.
void check_prefill_workspace(const PrefillArgs& args, std::size_t needed);

}  // namespace kda::cuda
