#include "cuda/simt/memory.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace kda::cuda::simt {
namespace {

TEST(Memory, FindsTheBufferAroundAnAddress) {
  Memory memory;
  const float host[4] = {};
  memory.map("host", host, sizeof host);
  const std::byte* a = memory.allocate("a", 100);
  const std::byte* b = memory.allocate("b", 0);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(memory.find(a)->name, "a");
  EXPECT_EQ(memory.find(a + 99)->name, "a");
  EXPECT_EQ(memory.find(b)->name, "b");
  EXPECT_EQ(memory.find(host + 3)->name, "host");
  EXPECT_EQ(memory.find(host)->access, Memory::Access::kRead);
  EXPECT_EQ(memory.find(nullptr), nullptr);
}

TEST(Memory, OwnBuffersAreAlignedAndNaN) {
  Memory memory;
  for (const std::size_t bytes : {1U, 3U, 4096U}) {
    const std::byte* p = memory.allocate("p", bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0U);
    EXPECT_EQ(p[0], std::byte{0xFF});
    EXPECT_EQ(p[bytes - 1], std::byte{0xFF});
  }
}

TEST(Memory, GuardBandsShowWritesOnBothSides) {
  for (const std::ptrdiff_t offset : {-1, -4096, 10, 4105}) {
    Memory memory;
    std::byte* p = memory.allocate("p", 10);
    static_cast<void>(memory.allocate("q", 10));
    p[0] = p[9] = std::byte{0};
    EXPECT_EQ(memory.damaged(), nullptr);
    p[offset] = std::byte{0};
    ASSERT_NE(memory.damaged(), nullptr) << offset;
    EXPECT_EQ(memory.damaged()->name, "p");
  }
}

}  // namespace
}  // namespace kda::cuda::simt
