#pragma once

#include "cuda/device/dev/memory.cuh"
#include "cuda/device/flavour.hpp"
#include "cuda/device/pointers.hpp"

namespace kda::cuda::device {
inline namespace dev {

template <int kBytes, class T, class U>
KDA_DEVICE void copy_async(Shared<T> destination, Global<U> source, int source_bytes = kBytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  const unsigned to = detail::shared_address(destination.raw);
  if constexpr (kBytes == 16) {  // the only size that may pass by L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source.raw),
                 "r"(source_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(source.raw),
                 "n"(kBytes), "r"(source_bytes)
                 : "memory");
  }
}

KDA_DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
KDA_DEVICE void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace dev
}  // namespace kda::cuda::device
