#include "cuda/simt/shared_arena.hpp"

#include "cuda/simt/options.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <cstring>
#include <new>

#include <sys/mman.h>

namespace kda::cuda::simt {
namespace {

constexpr std::size_t kMargin = std::size_t{256} * 1024;
constexpr std::size_t kSlotBytes = 2 * kMargin + std::size_t{256} * 1024;
constexpr std::size_t kArenaBytes = kSlotBytes * SharedArena::kMaxArrays;
constexpr std::size_t kBankPeriod = 1024;
static_assert(kMargin >= kMaxSharedBytes && kMargin % kBankPeriod == 0);

/// Address space only: pages that no array touches cost nothing.
void* reserve(std::size_t bytes) {
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  return map;
}

}  // namespace

SharedArena::SharedArena()
    : base_(static_cast<std::byte*>(reserve(kArenaBytes))),
      states_(static_cast<ByteState*>(reserve(kArenaBytes))) {}

SharedArena::~SharedArena() {
  munmap(base_, kArenaBytes);
  munmap(states_, kArenaBytes);
}

void SharedArena::reset() { count_ = 0; }

SharedArena::Array& SharedArena::make(std::size_t offset, std::size_t bytes, const void* key) {
  Array& array = arrays_[count_];
  array.data = base_ + count_ * kSlotBytes + kMargin + offset % kBankPeriod;
  array.bytes = bytes;
  array.key = key;
  ++count_;
  // NaN in every float type, should a fault of this class ever slip through.
  std::memset(array.data, 0xFF, bytes);
  const sanitizer::IgnoreScope ignore;
  std::memset(states(array.data), static_cast<int>(ByteState::kUnwritten), bytes);
  return array;
}

unsigned SharedArena::slot_of(const void* address) const {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
  return offset < kArenaBytes ? static_cast<unsigned>(offset / kSlotBytes) : kMaxArrays;
}

SharedArena::ByteState* SharedArena::states(const void* address) const {
  return states_ + (static_cast<const std::byte*>(address) - base_);
}

}  // namespace kda::cuda::simt
