#pragma once

#include "cuda/recurrent.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <vector>

// The rules that the C++ interface adds to its contract. Private to cuda/.

namespace kda::cuda {

/// Contract and own rules, in order; no memory but cu_seqlens is read.
[[nodiscard]] Semantics validate_recurrent(const RecurrentArgs& args);

/// The slot of each sequence. Throws kSlotIndexInvalid and kSlotDuplicate.
[[nodiscard]] std::vector<std::int64_t> checked_slots(const RecurrentArgs& args,
                                                      const Semantics& semantics);

/// kNullPointer, kMisalignedPointer, kWorkspaceTooSmall.
void check_workspace(const RecurrentArgs& args, std::size_t needed);

}  // namespace kda::cuda
