#pragma once

#include "cuda/device/flavour.hpp"
#include "cuda/device/pointers.hpp"

#include <cstdint>
#include <type_traits>

namespace kda::cuda::device {
inline namespace dev {

namespace detail {

// The words that memory instructions move; nvcc takes the state space from where the pointer comes.
template <std::size_t kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = unsigned char;
};
template <>
struct WordOf<2> {
  using Type = unsigned short;
};
template <>
struct WordOf<4> {
  using Type = unsigned;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};

template <class T>
KDA_DEVICE std::remove_const_t<T> read(T* at) {
  const auto word = *reinterpret_cast<const typename WordOf<sizeof(T)>::Type*>(at);
  std::remove_const_t<T> value;
  memcpy(&value, &word, sizeof value);
  return value;
}

template <class T>
KDA_DEVICE void write(T* at, const T& value) {
  typename WordOf<sizeof(T)>::Type word;
  memcpy(&word, &value, sizeof value);
  *reinterpret_cast<decltype(word)*>(at) = word;
}

KDA_DEVICE unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

}  // namespace detail

template <class T>
KDA_DEVICE std::remove_const_t<T> load(Global<T> p, std::int64_t i) {
  return detail::read((p + i).raw);
}

template <class T>
KDA_DEVICE std::remove_const_t<T> load(Shared<T> p, std::int64_t i) {
  return detail::read((p + i).raw);
}

template <class T>
KDA_DEVICE void store(Global<T> p, std::int64_t i, std::type_identity_t<T> value) {
  detail::write((p + i).raw, value);
}

template <class T>
KDA_DEVICE void store(Shared<T> p, std::int64_t i, std::type_identity_t<T> value) {
  detail::write((p + i).raw, value);
}

template <class T>
KDA_DEVICE T atomic_add(Global<T> p, std::int64_t i, std::type_identity_t<T> value) {
  return atomicAdd((p + i).raw, value);
}

template <class T>
KDA_DEVICE T atomic_add(Shared<T> p, std::int64_t i, std::type_identity_t<T> value) {
  return atomicAdd((p + i).raw, value);
}

struct SharedCarver {
  unsigned offset = 0;

  template <class T>
  KDA_DEVICE Shared<T> take(unsigned n, unsigned alignment = 128) {
    // More alignment than 128 would round static shared memory up as well.
    extern __shared__ __align__(128) unsigned char kda_dynamic_shared[];
    offset = (offset + alignment - 1) / alignment * alignment;
    T* array = reinterpret_cast<T*>(kda_dynamic_shared + offset);
    offset += n * static_cast<unsigned>(sizeof(T));
    return {array};
  }
};

}  // namespace dev
}  // namespace kda::cuda::device
