#pragma once

#include <cstddef>

// The list of compiled chain kernels, once for both compilers. Host code finds a kernel by its
// place.

namespace kda::cuda {

/// Applies X(policy, value columns of a block) in the order of prefill_chain_index.
#define KDA_PREFILL_CHAINS(X) \
  X(kMixed, 64)               \
  X(kMixed, 32)               \
  X(kSplit, 64)               \
  X(kSplit, 32)               \
  X(kBf16, 64)                \
  X(kBf16, 32)

/// Applies X(policy) in the order of PrefillPolicy.
#define KDA_PREFILL_POLICIES(X) X(kMixed) X(kSplit) X(kBf16)

constexpr std::size_t prefill_chain_index(std::size_t policy, int columns) {
  return 2 * policy + (columns == 64 ? 0U : 1U);
}

}  // namespace kda::cuda
