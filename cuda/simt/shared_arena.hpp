#pragma once

#include <cstddef>
#include <cstdint>

namespace kda::cuda::simt {

/// The shared memory of the block that a worker runs.
///
/// Every array has a slot of address space of its own, larger than all of a device's shared memory
/// on both sides of it, so that no index, however wrong, falls into another array. Within its slot
/// an array keeps its offset modulo 1024, hence its banks. For every byte the arena knows whether
/// it was written and how many cp.async may be writing it.
class SharedArena {
 public:
  static constexpr unsigned kMaxArrays = 64;

  enum class ByteState : std::uint8_t { kUnwritten, kWritten, kInFlight };

  struct Array {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    const void* key = nullptr;  ///< of a static array; nullptr for the dynamic ones
    char order_tag = 0;         ///< for TSan: making the array happens before its use
  };

  SharedArena();
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  /// Forgets all arrays, for the next block.
  void reset();

  /// The array number `index`; `index == count()` makes it, at `offset` bytes of shared memory.
  /// Nothing in it is written yet.
  Array& make(std::size_t offset, std::size_t bytes, const void* key);
  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] Array& array(unsigned index) { return arrays_[index]; }

  /// The number of the array whose slot holds the address, or kMaxArrays.
  [[nodiscard]] unsigned slot_of(const void* address) const;

  /// States of the bytes from an address inside an array.
  [[nodiscard]] ByteState* states(const void* address) const;

 private:
  std::byte* base_ = nullptr;
  ByteState* states_ = nullptr;
  unsigned count_ = 0;
  Array arrays_[kMaxArrays];
};

}  // namespace kda::cuda::simt
