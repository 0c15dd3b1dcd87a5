#pragma once

#include "reference/types/dtype.hpp"

#include <cstdint>
#include <type_traits>

// What kernels have instead of pointers. Neither can be dereferenced: elements are reached through
// `load`, `store` and the other primitives only, which name the address space and, on the CPU, the
// source line.

namespace kda::cuda::device {

/// N elements that move in one access.
template <class T, int N>
struct alignas(sizeof(T) * static_cast<unsigned>(N)) Vec {
  T x[static_cast<unsigned>(N)];
};

/// Registers of a thread. As aliases, since GCC objects to an int as an array's extent.
template <int N>
using Floats = float[static_cast<unsigned>(N)];
template <int M, int N>
using FloatMatrix = float[static_cast<unsigned>(M)][static_cast<unsigned>(N)];

namespace detail {

/// U with T's const.
template <class T, class U>
using Like = std::conditional_t<std::is_const_v<T>, const U, U>;

/// Plain address arithmetic: a wrong index must reach the check, not undefined behaviour. On a
/// device there is no check, and a compiler that sees pointers knows their state space.
template <class T>
KDA_HOST_DEVICE T* advance(T* p, std::int64_t n) {
#if defined(__CUDA_ARCH__)
  return p + n;
#else
  const auto bytes = n * static_cast<std::int64_t>(sizeof(T));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is the point
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) +
                              static_cast<std::uintptr_t>(bytes));
#endif
}

}  // namespace detail

/// Address of elements in global memory; what host code passes to kernels.
template <class T>
struct Global {
  T* raw = nullptr;

  /// As T* becomes const T*.
  template <class U>
  requires std::is_same_v<U, const T> KDA_HOST_DEVICE
  operator Global<U>() const {  // NOLINT(google-explicit-constructor)
    return {raw};
  }
  KDA_HOST_DEVICE explicit operator bool() const { return raw != nullptr; }
  KDA_HOST_DEVICE Global operator+(std::int64_t n) const { return {detail::advance(raw, n)}; }
  /// The same address with elements of another type.
  template <class U>
  [[nodiscard]] KDA_HOST_DEVICE Global<detail::Like<T, U>> as() const {
    return {reinterpret_cast<detail::Like<T, U>*>(raw)};
  }
};

/// Address of elements in the block's shared memory.
template <class T>
struct Shared {
  T* raw = nullptr;

  /// As T* becomes const T*.
  template <class U>
  requires std::is_same_v<U, const T> KDA_HOST_DEVICE
  operator Shared<U>() const {  // NOLINT(google-explicit-constructor)
    return {raw};
  }
  KDA_HOST_DEVICE Shared operator+(std::int64_t n) const { return {detail::advance(raw, n)}; }
  template <class U>
  [[nodiscard]] KDA_HOST_DEVICE Shared<detail::Like<T, U>> as() const {
    return {reinterpret_cast<detail::Like<T, U>*>(raw)};
  }
};

}  // namespace kda::cuda::device
