#pragma once

#include "harness/hdf5.hpp"
#include "reference/types/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kda::harness::hdf5 {

/// Every kind of element that files of ours may hold.
enum class ElementType : std::uint8_t {
  kBf16,
  kF16,
  kF32,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kStr
};

/// As the content hash spells it: "bf16", "f32", "u8", "str".
[[nodiscard]] std::string_view name(ElementType type) noexcept;

/// Bytes of one element; 0 for strings, whose length varies.
[[nodiscard]] std::size_t size_of(ElementType type) noexcept;

/// An HDF5 type that is one of ours, in the order of bytes in which it is stored.
struct StoredType {
  ElementType element;
  bool big_endian;
};

/// What an HDF5 type is, judged by its bit fields; an enumeration counts as its integers (h5py
/// stores booleans so). Nothing for opaque, compound, packed or otherwise foreign types.
[[nodiscard]] std::optional<StoredType> classify(hid_t type);

/// A foreign type in words, for messages: "opaque, 2 bytes".
[[nodiscard]] std::string describe(hid_t type);

/// The little-endian HDF5 type for a number type. bf16 is a 16-bit float whose fields h5dump, h5py
/// and MATLAB understand.
[[nodiscard]] Handle file_type(ElementType type, const Place& place);

/// The tensor type that holds these elements, if there is one.
[[nodiscard]] std::optional<Dtype> dtype_of(ElementType type) noexcept;
[[nodiscard]] ElementType element_of(Dtype dtype) noexcept;

/// Reverses the bytes of each element.
void swap_bytes(std::span<std::byte> data, std::size_t element_size) noexcept;

}  // namespace kda::harness::hdf5
