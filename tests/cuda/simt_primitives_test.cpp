#include "cuda/device/primitives.hpp"
#include "cuda/simt/launch.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

// What the primitives compute, on the executor, in every order.

namespace kda::cuda::device {
namespace {

KDA_KERNEL(32) shuffle_kernel(Global<int> out) {
  const int lane = static_cast<int>(lane_id());
  store(out, lane, shuffle_idx(lane * 10, lane + 33));
  store(out, 32 + lane, shuffle_xor(lane * 10, 5));
  store(out, 64 + lane, shuffle_up(lane * 10, 3));
  store(out, 96 + lane, shuffle_down(lane * 10, 3));
  if (lane < 8) store(out, 128 + lane, shuffle_xor(lane, 1, 0xFFU));
}

TEST(Primitives, ShufflesReadTheNamedLane) {
  for (const Mode& mode : all_modes()) {
    std::vector<int> out(160, -1);
    simt::Memory memory;
    memory.map("out", out.data(), out.size() * sizeof(int));
    simt::launch({"shuffle", {}, {32, 1, 1}}, mode.options(1), memory, &shuffle_kernel,
                 Global<int>{out.data()});
    for (int lane = 0; lane < 32; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      EXPECT_EQ(out[at], (lane + 1) % 32 * 10);
      EXPECT_EQ(out[32 + at], (lane ^ 5) * 10);
      EXPECT_EQ(out[64 + at], (lane < 3 ? lane : lane - 3) * 10);
      EXPECT_EQ(out[96 + at], (lane > 28 ? lane : lane + 3) * 10);
      EXPECT_EQ(out[128 + at], lane < 8 ? lane ^ 1 : -1);
    }
  }
}

KDA_KERNEL(64) vote_kernel(Global<std::uint32_t> out) {
  const unsigned lane = lane_id();
  const int base = static_cast<int>(thread_idx_x()) * 4;
  store(out, base, warp_ballot(lane % 3 == 0));
  store(out, base + 1, warp_any(lane == 31) ? 1U : 0U);
  store(out, base + 2, warp_all(lane != 31) ? 1U : 0U);
  store(out, base + 3, lane < 4 ? warp_ballot(lane != 2, 0xFU) : 0U);
}

TEST(Primitives, VotesGatherPredicates) {
  for (const Mode& mode : all_modes()) {
    std::vector<std::uint32_t> out(64 * 4);
    simt::Memory memory;
    memory.map("out", out.data(), out.size() * 4);
    simt::launch({"vote", {}, {64, 1, 1}}, mode.options(2), memory, &vote_kernel,
                 Global<std::uint32_t>{out.data()});
    for (std::size_t t = 0; t < 64; ++t) {
      EXPECT_EQ(out[t * 4], 0x49249249U);
      EXPECT_EQ(out[t * 4 + 1], 1U);
      EXPECT_EQ(out[t * 4 + 2], 0U);
      EXPECT_EQ(out[t * 4 + 3], t % 32 < 4 ? 0xBU : 0U);
    }
  }
}

KDA_KERNEL(24) index_kernel(Global<unsigned> out) {
  const unsigned block =
      block_idx_x() + grid_dim_x() * (block_idx_y() + grid_dim_y() * block_idx_z());
  const unsigned thread =
      thread_idx_x() + block_dim_x() * (thread_idx_y() + block_dim_y() * thread_idx_z());
  atomic_add(out.as<int>(), block * 24 + thread, 1);
  EXPECT_EQ(lane_id(), thread % 32);
}

TEST(Primitives, EveryThreadOfAThreeDimensionalGridRunsOnce) {
  std::vector<unsigned> out(2 * 3 * 5 * 24, 0);
  simt::Memory memory;
  memory.map("out", out.data(), out.size() * 4);
  simt::launch({"index", {2, 3, 5}, {4, 3, 2}}, {}, memory, &index_kernel,
               Global<unsigned>{out.data()});
  EXPECT_EQ(out, std::vector<unsigned>(out.size(), 1));
}

KDA_KERNEL(128) atomic_kernel(Global<float> sum, Global<int> count) {
  KDA_SHARED(int, local, 1);
  if (thread_idx_x() == 0) store(local, 0, 0);
  sync_block();
  atomic_add(local, 0, 1);
  atomic_add(sum, 0, 0.5F);
  sync_block();
  if (thread_idx_x() == 0) atomic_add(count, 0, load(local, 0));
}

TEST(Primitives, AtomicsLoseNothing) {
  for (const Mode& mode : all_modes()) {
    float sum = 0;
    int count = 0;
    simt::Memory memory;
    memory.map("sum", &sum, sizeof sum);
    memory.map("count", &count, sizeof count);
    simt::launch({"atomic", {10, 1, 1}, {128, 1, 1}}, mode.options(3, 2), memory, &atomic_kernel,
                 Global<float>{&sum}, Global<int>{&count});
    EXPECT_EQ(sum, 640.0F);
    EXPECT_EQ(count, 1280);
  }
}

/// Three groups in flight; widths of 4, 8 and 16, and a copy that reads less than it writes.
KDA_KERNEL(32) copy_kernel(Global<const std::uint32_t> in, Global<std::uint32_t> out) {
  KDA_SHARED(std::uint32_t, buffer, 32 * 8);
  const int lane = static_cast<int>(lane_id());
  const int at = lane * 8;
  copy_async<16>(buffer + at, in + at, 6);
  copy_commit();
  copy_async<8>(buffer + at + 4, in + at + 4);
  copy_commit();
  copy_async<4>(buffer + at + 6, in + at + 6);
  copy_async<4>(buffer + at + 7, in + 1000000, 0);  // reads nothing, so nowhere
  copy_commit();
  copy_wait<2>();
  for (int i = 0; i < 4; ++i) store(out, at + i, load(buffer, at + i));
  copy_wait<0>();
  for (int i = 4; i < 8; ++i) store(out, at + i, load(buffer, at + i));
}

TEST(Primitives, CopiesArriveByGroupAndFillWithZero) {
  std::vector<std::uint32_t> in(256);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = 0x01020304U * static_cast<unsigned>(i + 1);
  for (const Mode& mode : all_modes()) {
    simt::Memory memory;
    std::byte* source = memory.allocate("in", 1024, simt::Memory::Access::kRead);
    std::memcpy(source, in.data(), 1024);
    std::vector<std::uint32_t> out(256, 7);
    memory.map("out", out.data(), 1024);
    simt::launch({"copy", {}, {32, 1, 1}}, mode.options(4), memory, &copy_kernel,
                 Global<const std::uint32_t>{reinterpret_cast<const std::uint32_t*>(source)},
                 Global<std::uint32_t>{out.data()});
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t part = i % 8;
      const std::uint32_t want = part == 1                ? in[i] & 0xFFFFU
                                 : part == 2 || part == 3 ? 0
                                 : part == 7              ? 0
                                                          : in[i];
      EXPECT_EQ(out[i], want) << i << " " << mode.name;
    }
  }
}

KDA_KERNEL(32) math_kernel(Global<const float> x, Global<float> y) {
  const int i = static_cast<int>(lane_id());
  const float v = load(x, i);
  store(y, i, ex2_approx(v));
  store(y, 32 + i, rcp_approx(v));
  store(y, 64 + i, rsqrt_approx(v));
  store(y, 96 + i, fma_rn(v, v, -1.0F));
  store(y, 128 + i, widen(narrow<Bf16>(v)));
  store(y, 160 + i, widen(narrow<F16>(v)));
  store(y, 192 + i, bits_float(pack_bf16(v, 1.0F)));
  store(y, 224 + i, bits_float(pack_f16(v, 1.0F)));
}

TEST(Primitives, MathIsThatOfTheHost) {
  std::vector<float> x(32);
  for (std::size_t i = 0; i < 32; ++i) x[i] = 0.37F * static_cast<float>(i) + 0.01F;
  std::vector<float> y(256);
  simt::Memory memory;
  memory.map("x", std::as_const(x).data(), x.size() * 4);
  memory.map("y", y.data(), y.size() * 4);
  simt::launch({"math", {}, {32, 1, 1}}, {}, memory, &math_kernel, Global<const float>{x.data()},
               Global<float>{y.data()});
  const auto bits = [](float v) { return kda::detail::bits_of(v); };
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_FLOAT_EQ(y[i], std::exp2(x[i]));
    EXPECT_FLOAT_EQ(y[32 + i], 1 / x[i]);
    EXPECT_FLOAT_EQ(y[64 + i], 1 / std::sqrt(x[i]));
    EXPECT_EQ(y[96 + i], std::fma(x[i], x[i], -1.0F));
    EXPECT_EQ(y[128 + i], to_float(to_bf16(x[i])));
    EXPECT_EQ(y[160 + i], to_float(to_f16(x[i])));
    EXPECT_EQ(bits(y[192 + i]), 0x3F800000U | to_bf16(x[i]).bits);
    EXPECT_EQ(bits(y[224 + i]), 0x3C000000U | to_f16(x[i]).bits);
  }
}

}  // namespace
}  // namespace kda::cuda::device
