#pragma once

#include "cuda/device/pointers.hpp"
#include "cuda/simt/executor.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace kda::cuda::device {
inline namespace cpu {

namespace detail {

// Data moves as words that may alias anything. Not memcpy: GCC expands that inline without telling
// TSan, and races would be missed.
template <std::size_t kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type [[gnu::may_alias]] = std::uint8_t;
};
template <>
struct WordOf<2> {
  using Type [[gnu::may_alias]] = std::uint16_t;
};
template <>
struct WordOf<4> {
  using Type [[gnu::may_alias]] = std::uint32_t;
};
template <>
struct WordOf<8> {
  using Type [[gnu::may_alias]] = std::uint64_t;
};

template <std::size_t kBytes>
using Word = typename WordOf<(kBytes > 8 ? 8 : kBytes)>::Type;

template <class T>
constexpr void check_type() {
  constexpr std::size_t kBytes = sizeof(T);
  static_assert(kBytes == 1 || kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16,
                "no memory instruction has this size");
  static_assert(std::is_trivially_copyable_v<T>);
}

template <class T>
std::remove_const_t<T> read(T* at) {
  check_type<T>();
  using W = Word<sizeof(T)>;
  W words[sizeof(T) / sizeof(W)];
  for (std::size_t i = 0; i < sizeof(T) / sizeof(W); ++i) {
    words[i] = reinterpret_cast<const W*>(at)[i];
  }
  std::remove_const_t<T> value;
  std::memcpy(&value, words, sizeof value);
  return value;
}

template <class T>
void write(T* at, const T& value) {
  check_type<T>();
  using W = Word<sizeof(T)>;
  W words[sizeof(T) / sizeof(W)];
  std::memcpy(words, &value, sizeof value);
  for (std::size_t i = 0; i < sizeof(T) / sizeof(W); ++i) reinterpret_cast<W*>(at)[i] = words[i];
}

inline float atomic_add(float* p, float value) {
  using W = Word<4>;
  auto* word = reinterpret_cast<W*>(p);
  std::uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const std::uint32_t sum = kda::detail::bits_of(kda::detail::float_of(old) + value);
    if (__atomic_compare_exchange_n(word, &old, sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return kda::detail::float_of(old);
    }
  }
}

inline int atomic_add(int* p, int value) { return __atomic_fetch_add(p, value, __ATOMIC_RELAXED); }

}  // namespace detail

/// Element i. Sizes of 1, 2, 4, 8 and 16 bytes (Vec), aligned to their size.
template <class T>
std::remove_const_t<T> load(Global<T> p, std::int64_t i, simt::Site site = simt::Site::here()) {
  auto* at = static_cast<T*>(simt::access(simt::Access::kGlobalLoad, (p + i).raw, sizeof(T), site));
  return detail::read(at);
}

template <class T>
std::remove_const_t<T> load(Shared<T> p, std::int64_t i, simt::Site site = simt::Site::here()) {
  auto* at = static_cast<T*>(simt::access(simt::Access::kSharedLoad, (p + i).raw, sizeof(T), site));
  return detail::read(at);
}

template <class T>
void store(Global<T> p, std::int64_t i, std::type_identity_t<T> value,
           simt::Site site = simt::Site::here()) {
  auto* at =
      static_cast<T*>(simt::access(simt::Access::kGlobalStore, (p + i).raw, sizeof(T), site));
  detail::write(at, value);
}

template <class T>
void store(Shared<T> p, std::int64_t i, std::type_identity_t<T> value,
           simt::Site site = simt::Site::here()) {
  auto* at =
      static_cast<T*>(simt::access(simt::Access::kSharedStore, (p + i).raw, sizeof(T), site));
  detail::write(at, value);
}

/// Adds to element i (float or int), relaxed; returns what was there.
template <class T>
T atomic_add(Global<T> p, std::int64_t i, std::type_identity_t<T> value,
             simt::Site site = simt::Site::here()) {
  auto* at =
      static_cast<T*>(simt::access(simt::Access::kGlobalAtomic, (p + i).raw, sizeof(T), site));
  simt::count_atomic();
  return detail::atomic_add(at, value);
}

template <class T>
T atomic_add(Shared<T> p, std::int64_t i, std::type_identity_t<T> value,
             simt::Site site = simt::Site::here()) {
  T* at = (p + i).raw;
  at = static_cast<T*>(simt::access(simt::Access::kSharedLoad, at, sizeof(T), site));
  at = static_cast<T*>(simt::access(simt::Access::kSharedStore, at, sizeof(T), site));
  simt::count_atomic();
  return detail::atomic_add(at, value);
}

/// Cuts the launch's dynamic shared memory into arrays. Every thread takes the same ones, in the
/// same order; the address of one says nothing about that of another.
struct SharedCarver {
  template <class T>
  Shared<T> take(unsigned n, unsigned alignment = 128, simt::Site site = simt::Site::here()) {
    return {static_cast<T*>(simt::shared_dynamic(n * sizeof(T), alignment, site))};
  }
};

}  // namespace cpu
}  // namespace kda::cuda::device
