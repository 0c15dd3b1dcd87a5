#pragma once

#include "cuda/device/cpu/memory.hpp"
#include "cuda/device/pointers.hpp"
#include "cuda/simt/executor.hpp"

#include <cstddef>
#include <cstdint>

namespace kda::cuda::device {
inline namespace cpu {

namespace detail {

inline void move_copy(const simt::Copy& copy) {
  using Byte = Word<1>;
  using Four = Word<4>;
  for (unsigned at = 0; at < copy.width; at += 4) {
    std::uint32_t word = 0;
    if (at + 4 <= copy.source_bytes) {
      word = *reinterpret_cast<const Four*>(copy.source + at);
    } else {
      for (unsigned i = at; i < copy.source_bytes; ++i) {
        word |= std::uint32_t{*reinterpret_cast<const Byte*>(copy.source + i)} << (8 * (i - at));
      }
    }
    *reinterpret_cast<Four*>(copy.destination + at) = word;
  }
}

/// From its issue on the destination holds anything. Written, so that TSan knows of it too.
inline void spoil_destination(const simt::Copy& copy) {
  for (unsigned at = 0; at < copy.width; at += 4) {
    *reinterpret_cast<Word<4>*>(copy.destination + at) = 0xFFFFFFFFU;
  }
}

}  // namespace detail

/// Copies kBytes (4, 8 or 16, aligned so) from global to shared memory some time before the wait
/// for its group ends. Only `source_bytes` are read; the rest becomes 0.
template <int kBytes, class T, class U>
void copy_async(Shared<T> destination, Global<U> source, int source_bytes = kBytes,
                simt::Site site = simt::Site::here()) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  simt::Copy copy{reinterpret_cast<std::byte*>(destination.raw),
                  reinterpret_cast<const std::byte*>(source.raw), kBytes,
                  static_cast<unsigned>(source_bytes)};
  switch (simt::issue_copy(copy, site)) {
    case simt::Issue::kNow: detail::move_copy(copy); return;
    case simt::Issue::kLater: detail::spoil_destination(copy); return;
    case simt::Issue::kNever: return;
  }
}

/// Ends this thread's current group of copies.
inline void copy_commit() { simt::commit_copies(); }

/// Waits until at most N of this thread's newest groups are unfinished. Others see the data only
/// after a barrier as well.
template <int N>
void copy_wait(simt::Site site = simt::Site::here()) {
  while (const simt::Copy* copy = simt::next_finished_copy(N, site)) detail::move_copy(*copy);
}

}  // namespace cpu
}  // namespace kda::cuda::device
