#pragma once

#include <cstddef>

// The list of compiled kernels, once for both compilers. Host code finds a kernel by its place.

namespace kda::cuda {

/// Applies X(state type, key first, padded K) in the order of recurrent_index.
#define KDA_RECURRENT_VARIANTS(X) \
  X(float, true, 64)              \
  X(float, true, 128)             \
  X(float, true, 256)             \
  X(float, false, 64)             \
  X(float, false, 128)            \
  X(float, false, 256)            \
  X(::kda::Bf16, true, 64)        \
  X(::kda::Bf16, true, 128)       \
  X(::kda::Bf16, true, 256)       \
  X(::kda::Bf16, false, 64)       \
  X(::kda::Bf16, false, 128)      \
  X(::kda::Bf16, false, 256)

constexpr std::size_t recurrent_index(bool bf16_state, bool key_first, int padded_k) {
  return (bf16_state ? 6U : 0U) + (key_first ? 0U : 3U) +
         (padded_k == 64 ? 0U : (padded_k == 128 ? 1U : 2U));
}

}  // namespace kda::cuda
