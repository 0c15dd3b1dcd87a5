#pragma once

#include "cuda/simt/executor.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace kda::cuda::device {
inline namespace cpu {

inline constexpr std::uint32_t kFullMask = 0xFFFFFFFFU;

/// All threads of the block, from one line of the kernel; orders memory.
inline void sync_block(simt::Site site = simt::Site::here()) { simt::block_barrier(site); }

/// Named barriers 1..15 for `threads` threads (whole warps): wait, or only announce.
inline void sync_named(int id, int threads, simt::Site site = simt::Site::here()) {
  simt::named_barrier(id, threads, true, site);
}
inline void arrive_named(int id, int threads, simt::Site site = simt::Site::here()) {
  simt::named_barrier(id, threads, false, site);
}

/// Lanes of the mask; orders memory among them.
inline void sync_warp(std::uint32_t mask = kFullMask, simt::Site site = simt::Site::here()) {
  simt::warp_barrier(mask, site);
}

namespace detail {

template <class T>
T shuffle(simt::Shuffle kind, T value, int operand, std::uint32_t mask, simt::Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = simt::shuffle(kind, word, operand, mask, site);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace detail

/// Value of lane `source`; of lane own ^ `bits`; of the lane `delta` below or above (one's own
/// where there is none).
template <class T>
T shuffle_idx(T value, int source, std::uint32_t mask = kFullMask,
              simt::Site site = simt::Site::here()) {
  return detail::shuffle(simt::Shuffle::kIndex, value, source, mask, site);
}
template <class T>
T shuffle_xor(T value, int bits, std::uint32_t mask = kFullMask,
              simt::Site site = simt::Site::here()) {
  return detail::shuffle(simt::Shuffle::kXor, value, bits, mask, site);
}
template <class T>
T shuffle_up(T value, int delta, std::uint32_t mask = kFullMask,
             simt::Site site = simt::Site::here()) {
  return detail::shuffle(simt::Shuffle::kUp, value, delta, mask, site);
}
template <class T>
T shuffle_down(T value, int delta, std::uint32_t mask = kFullMask,
               simt::Site site = simt::Site::here()) {
  return detail::shuffle(simt::Shuffle::kDown, value, delta, mask, site);
}

inline std::uint32_t warp_ballot(bool predicate, std::uint32_t mask = kFullMask,
                                 simt::Site site = simt::Site::here()) {
  return simt::ballot(predicate, mask, site);
}
inline bool warp_any(bool predicate, std::uint32_t mask = kFullMask,
                     simt::Site site = simt::Site::here()) {
  return simt::ballot(predicate, mask, site) != 0;
}
inline bool warp_all(bool predicate, std::uint32_t mask = kFullMask,
                     simt::Site site = simt::Site::here()) {
  return simt::ballot(predicate, mask, site) == mask;
}

inline int count_bits(std::uint32_t x) { return std::popcount(x); }

}  // namespace cpu
}  // namespace kda::cuda::device
