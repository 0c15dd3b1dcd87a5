#include "cuda/simt/memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace kda::cuda::simt {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGuardBytes = 4096;
constexpr auto kGuardByte = std::byte{0xA5};
constexpr auto kFreshByte = std::byte{0xFF};

bool intact(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == kGuardByte; });
}

}  // namespace

Memory::~Memory() {
  for (const Owned& owned : owned_) ::operator delete (owned.block, std::align_val_t{kAlignment});
}

std::byte* Memory::allocate(std::string name, std::size_t bytes, Access access) {
  const std::size_t block_bytes = bytes + 2 * kGuardBytes;
  auto* block = static_cast<std::byte*>(::operator new (block_bytes, std::align_val_t{kAlignment}));
  std::fill(block, block + block_bytes, kGuardByte);
  std::byte* address = block + kGuardBytes;
  std::fill(address, address + bytes, kFreshByte);
  Buffer buffer{std::move(name), address, bytes, access};
  owned_.push_back({block, block_bytes, buffer});
  insert(std::move(buffer));
  return address;
}

void Memory::map(std::string name, const void* address, std::size_t bytes) {
  // Stored without const so that both kinds share one type; `access` is what the executor obeys.
  auto* writable = static_cast<std::byte*>(const_cast<void*>(address));
  insert({std::move(name), writable, bytes, Access::kRead});
}

void Memory::map(std::string name, void* address, std::size_t bytes) {
  insert({std::move(name), static_cast<std::byte*>(address), bytes, Access::kReadWrite});
}

void Memory::insert(Buffer buffer) {
  const auto at = std::upper_bound(
      buffers_.begin(), buffers_.end(), buffer,
      [](const Buffer& a, const Buffer& b) { return std::less<>{}(a.address, b.address); });
  buffers_.insert(at, std::move(buffer));
}

const Memory::Buffer* Memory::find(const void* address) const noexcept {
  const auto* wanted = static_cast<const std::byte*>(address);
  const auto after = std::upper_bound(
      buffers_.begin(), buffers_.end(), wanted,
      [](const std::byte* a, const Buffer& b) { return std::less<>{}(a, b.address); });
  return after == buffers_.begin() ? nullptr : &*std::prev(after);
}

const Memory::Buffer* Memory::damaged() const noexcept {
  for (const Owned& owned : owned_) {
    const std::byte* end = owned.buffer.address + owned.buffer.bytes;
    if (!intact(owned.block, owned.buffer.address) ||
        !intact(end, owned.block + owned.block_bytes)) {
      return &owned.buffer;
    }
  }
  return nullptr;
}

}  // namespace kda::cuda::simt
