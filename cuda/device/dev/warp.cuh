#pragma once

#include "cuda/device/flavour.hpp"

#include <cstdint>

namespace kda::cuda::device {
inline namespace dev {

inline constexpr std::uint32_t kFullMask = 0xFFFFFFFFU;

KDA_DEVICE void sync_block() { __syncthreads(); }

KDA_DEVICE void sync_named(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

KDA_DEVICE void arrive_named(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

KDA_DEVICE void sync_warp(std::uint32_t mask = kFullMask) { __syncwarp(mask); }

template <class T>
KDA_DEVICE T shuffle_idx(T value, int source, std::uint32_t mask = kFullMask) {
  return __shfl_sync(mask, value, source);
}

template <class T>
KDA_DEVICE T shuffle_xor(T value, int bits, std::uint32_t mask = kFullMask) {
  return __shfl_xor_sync(mask, value, bits);
}

template <class T>
KDA_DEVICE T shuffle_up(T value, int delta, std::uint32_t mask = kFullMask) {
  return __shfl_up_sync(mask, value, static_cast<unsigned>(delta));
}

template <class T>
KDA_DEVICE T shuffle_down(T value, int delta, std::uint32_t mask = kFullMask) {
  return __shfl_down_sync(mask, value, static_cast<unsigned>(delta));
}

KDA_DEVICE std::uint32_t warp_ballot(bool predicate, std::uint32_t mask = kFullMask) {
  return __ballot_sync(mask, predicate);
}

KDA_DEVICE bool warp_any(bool predicate, std::uint32_t mask = kFullMask) {
  return __any_sync(mask, predicate) != 0;
}

KDA_DEVICE bool warp_all(bool predicate, std::uint32_t mask = kFullMask) {
  return __all_sync(mask, predicate) != 0;
}

KDA_DEVICE int count_bits(std::uint32_t x) { return __popc(x); }

}  // namespace dev
}  // namespace kda::cuda::device
