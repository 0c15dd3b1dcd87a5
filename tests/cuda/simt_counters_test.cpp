#include "cuda/device/primitives.hpp"
#include "cuda/simt/launch.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <cstring>

#include <gtest/gtest.h>

// Counts worked out by hand, the same in every order and for every number of workers.

namespace kda::cuda::device {
namespace {

using simt::Counters;
using simt::GlobalTraffic;
using simt::SharedTraffic;

using Kernel = void (*)(Global<const float>, Global<float>);

/// Runs with "in" and "out" of 4096 floats; checks that all modes and 1..3 workers count alike.
Counters count(Kernel kernel, unsigned threads = 32, unsigned blocks = 1) {
  Counters first;
  bool have_first = false;
  for (const Mode& mode : all_modes()) {
    for (unsigned workers = 1; workers <= 3; ++workers) {
      simt::Memory memory;
      auto* in = memory.allocate_array<float>("in", 4096);
      std::memset(in, 0, 4096 * sizeof(float));
      auto* out = memory.allocate_array<float>("out", 4096);
      const Counters counters =
          simt::launch({"counted", {blocks, 1, 1}, {threads, 1, 1}, 8192}, mode.options(9, workers),
                       memory, kernel, Global<const float>{in}, Global<float>{out});
      if (!have_first) first = counters;
      have_first = true;
      EXPECT_EQ(counters, first) << mode.name << ", " << workers << " workers";
    }
  }
  return first;
}

int index() { return static_cast<int>(thread_idx_x()); }

KDA_KERNEL(128) collectives_kernel(Global<const float>, Global<float>) {
  float d[4] = {};
  const std::uint32_t a[4] = {};
  for (int i = 0; i < 3; ++i) mma_m16n8k16_bf16(d, a, 0, 0);
  mma_m16n8k16_f16(d, a, 0, 0);
  static_cast<void>(movmatrix_trans(0));
  for (int i = 0; i < 5; ++i) static_cast<void>(shuffle_xor(1, 1));
  static_cast<void>(warp_ballot(true));
  static_cast<void>(warp_any(true));
  sync_warp();
  sync_block();
  sync_block();
  if (index() < 64) {
    sync_named(1, 128);
  } else {
    arrive_named(1, 128);
  }
  static_cast<void>(ex2_approx(1.0F) + rcp_approx(1.0F) + rsqrt_approx(1.0F));
  if (index() < 3) static_cast<void>(ex2_approx(0.0F));
}

TEST(Counters, CollectivesByWarpBarriersByBlockSpecialsByThread) {
  const Counters c = count(&collectives_kernel, 128, 2);
  EXPECT_EQ(c.blocks, 2U);
  EXPECT_EQ(c.mma, 2U * 4 * 4);
  EXPECT_EQ(c.movmatrix, 2U * 4);
  EXPECT_EQ(c.shuffles, 2U * 4 * 5);
  EXPECT_EQ(c.votes, 2U * 4 * 2);
  EXPECT_EQ(c.warp_barriers, 2U * 4);
  EXPECT_EQ(c.block_barriers, 2U * 2);
  EXPECT_EQ(c.named_barriers, 2U);
  EXPECT_EQ(c.path_barriers, 3U) << "of one block";
  EXPECT_EQ(c.special, 2U * (128 * 3 + 3));
  EXPECT_EQ(c.global_load, GlobalTraffic{});
}

/// Block b passes b + 1 barriers.
KDA_KERNEL(64) uneven_barriers_kernel(Global<const float>, Global<float>) {
  for (unsigned i = 0; i <= block_idx_x(); ++i) sync_block();
}

TEST(Counters, PathIsTheLongestOfAnyBlockAndLaunchesAddUp) {
  Counters c = count(&uneven_barriers_kernel, 64, 5);
  EXPECT_EQ(c.block_barriers, 1U + 2 + 3 + 4 + 5);
  EXPECT_EQ(c.path_barriers, 5U);
  c += count(&uneven_barriers_kernel, 64, 2);
  EXPECT_EQ(c.path_barriers, 5U + 2);
}

KDA_KERNEL(32) coalesced_kernel(Global<const float> in, Global<float> out) {
  store(out, index(), load(in, index()));
}
KDA_KERNEL(32) shifted_kernel(Global<const float> in, Global<float> out) {
  store(out, index(), load(in, index() + 1));
}
KDA_KERNEL(32) strided_kernel(Global<const float> in, Global<float> out) {
  store(out, index() * 8, load(in, index() * 16));
}
KDA_KERNEL(32) broadcast_kernel(Global<const float> in, Global<float>) {
  static_cast<void>(load(in, 5));
}
KDA_KERNEL(32) vector_kernel(Global<const float> in, Global<float>) {
  static_cast<void>(load(in.as<Vec<float, 4>>(), index()));
}
KDA_KERNEL(32) half_kernel(Global<const float> in, Global<float>) {
  static_cast<void>(load(in.as<Bf16>(), index()));
}
KDA_KERNEL(32) some_lanes_kernel(Global<const float> in, Global<float>) {
  if (index() % 4 == 0) static_cast<void>(load(in, index()));
}

TEST(Counters, GlobalSectorsAndTheBytesUsedOfThem) {
  EXPECT_EQ(count(&coalesced_kernel).global_load, (GlobalTraffic{1, 4, 128}));
  EXPECT_EQ(count(&coalesced_kernel).global_store, (GlobalTraffic{1, 4, 128}));
  EXPECT_EQ(count(&shifted_kernel).global_load, (GlobalTraffic{1, 5, 128}));
  EXPECT_EQ(count(&strided_kernel).global_load, (GlobalTraffic{1, 32, 128}));
  EXPECT_EQ(count(&strided_kernel).global_store, (GlobalTraffic{1, 32, 128}));
  EXPECT_EQ(count(&broadcast_kernel).global_load, (GlobalTraffic{1, 1, 4}));
  EXPECT_EQ(count(&vector_kernel).global_load, (GlobalTraffic{1, 16, 512}));
  EXPECT_EQ(count(&half_kernel).global_load, (GlobalTraffic{1, 2, 64}));
  EXPECT_EQ(count(&some_lanes_kernel).global_load, (GlobalTraffic{1, 4, 32}));
}

/// Lanes go round different numbers of times and meet again.
KDA_KERNEL(64) ragged_kernel(Global<const float> in, Global<float>) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < index() % 3; ++i) {
      static_cast<void>(load(in, round * 512 + i * 64 + index()));
    }
    sync_warp();
  }
}

TEST(Counters, LanesOfOneVisitBelongTogether) {
  // A round of a warp: one request of the lanes with index % 3 > 0, one of those with 2. Every
  // sector of 8 lanes holds both kinds. Lanes 1, 2 mod 3: 21 or 22 of 32; lanes 2 mod 3: 10 or 11.
  const Counters c = count(&ragged_kernel, 64);
  EXPECT_EQ(c.global_load, (GlobalTraffic{2 * 2 * 2, 2 * 2 * 2 * 4, 2 * 4 * (42 + 21)}));
}

template <int kStride>
KDA_KERNEL(32)
stride_kernel(Global<const float>, Global<float>) {
  SharedCarver carver;
  const Shared<float> array = carver.take<float>(32 * kStride);
  store(array, index() * kStride, 1.0F);
  static_cast<void>(load(array, index() * kStride));
}

TEST(Counters, SharedBankConflictsOfStrides) {
  EXPECT_EQ(count(&stride_kernel<1>).shared_store, (SharedTraffic{1, 128, 1, 0}));
  EXPECT_EQ(count(&stride_kernel<1>).shared_load, (SharedTraffic{1, 128, 1, 0}));
  EXPECT_EQ(count(&stride_kernel<2>).shared_load, (SharedTraffic{1, 128, 2, 1}));
  EXPECT_EQ(count(&stride_kernel<8>).shared_load, (SharedTraffic{1, 128, 8, 7}));
  EXPECT_EQ(count(&stride_kernel<32>).shared_load, (SharedTraffic{1, 128, 32, 31}));
  EXPECT_EQ(count(&stride_kernel<33>).shared_load, (SharedTraffic{1, 128, 1, 0}));
}

KDA_KERNEL(32) shared_shapes_kernel(Global<const float>, Global<float>) {
  SharedCarver carver;
  const Shared<float> array = carver.take<float>(256);
  for (int i = 0; i < 8; ++i) store(array, i * 32 + index(), 1.0F);
  sync_warp();
  static_cast<void>(load(array, 3));                                     // one word for all
  static_cast<void>(load(array.as<Bf16>(), index()));                    // two lanes a word
  static_cast<void>(load(array.as<Vec<float, 2>>(), index()));           // 2 x 16 lanes
  static_cast<void>(load(array.as<Vec<float, 4>>(), index()));           // 4 x 8 lanes
  static_cast<void>(load(array.as<Vec<float, 4>>(), index() * 2 % 64));  // every other 16 bytes
}

TEST(Counters, SharedBroadcastsAndVectors) {
  const Counters c = count(&shared_shapes_kernel);
  EXPECT_EQ(c.shared_store, (SharedTraffic{8, 8 * 128, 8, 0}));
  // Wavefronts 1, 1, 2, 4, and 4 groups of 8 lanes that use half of the banks twice.
  EXPECT_EQ(c.shared_load, (SharedTraffic{5, 128 + 64 + 256 + 512 + 512, 1 + 1 + 2 + 4 + 8, 4}));
}

template <int kRowUnits>
KDA_KERNEL(32)
ldmatrix_rows_kernel(Global<const float>, Global<float>) {
  SharedCarver carver;
  const Shared<std::uint16_t> array = carver.take<std::uint16_t>(32 * 8 * kRowUnits);
  const int row = index() * 8 * kRowUnits;
  store(array.as<Vec<std::uint16_t, 8>>(), index() * kRowUnits, {});
  sync_warp();
  std::uint32_t r4[4];
  ldmatrix(r4, array + row);
  std::uint32_t r2[2];
  ldmatrix_trans(r2, array + row);
}

TEST(Counters, LdmatrixServesEightRowsAtATime) {
  Counters c = count(&ldmatrix_rows_kernel<1>);
  EXPECT_EQ(c.ldmatrix, 2U);
  EXPECT_EQ(c.shared_load, (SharedTraffic{2, (32 + 16) * 16, 4 + 2, 0}));
  c = count(&ldmatrix_rows_kernel<8>);  // rows 128 bytes apart: all in the same banks
  EXPECT_EQ(c.shared_load, (SharedTraffic{2, (32 + 16) * 16, 8 * (4 + 2), 7 * (4 + 2)}));
  c = count(&ldmatrix_rows_kernel<9>);  // padded by 16 bytes
  EXPECT_EQ(c.shared_load, (SharedTraffic{2, (32 + 16) * 16, 4 + 2, 0}));
}

KDA_KERNEL(32) copies_kernel(Global<const float> in, Global<float>) {
  KDA_SHARED(float, array, 128);
  copy_async<16>(array + index() * 4, in + index() * 4, index() == 31 ? 8 : 16);
  copy_commit();
  copy_wait<0>();
}

TEST(Counters, CopiesCountOnBothSides) {
  const Counters c = count(&copies_kernel);
  EXPECT_EQ(c.copies, 32U);
  EXPECT_EQ(c.copy_groups, 32U);
  EXPECT_EQ(c.copy_load, (GlobalTraffic{1, 16, 504}));
  EXPECT_EQ(c.copy_store, (SharedTraffic{1, 512, 4, 0}));
  EXPECT_EQ(c.global_load, GlobalTraffic{});
  EXPECT_EQ(c.shared_store, SharedTraffic{});
}

KDA_KERNEL(32) atomics_kernel(Global<const float>, Global<float> out) {
  KDA_SHARED(int, local, 1);
  if (index() == 0) store(local, 0, 0);
  sync_warp();
  atomic_add(out, 0, 1.0F);
  atomic_add(local, 0, 1);
}

TEST(Counters, AtomicsByThread) {
  const Counters c = count(&atomics_kernel);
  EXPECT_EQ(c.atomics, 64U);
  EXPECT_EQ(c.global_atomic, (GlobalTraffic{1, 1, 4}));
  EXPECT_EQ(c.shared_load, (SharedTraffic{1, 128, 1, 0}));
  EXPECT_EQ(c.shared_store, (SharedTraffic{2, 132, 2, 0}));
}

TEST(Counters, AddUp) {
  Counters c = count(&copies_kernel);
  const Counters once = c;
  c += once;
  EXPECT_EQ(c.copies, 64U);
  EXPECT_EQ(c.copy_load, (GlobalTraffic{2, 32, 1008}));
  EXPECT_EQ(count(&copies_kernel, 32, 2), c) << "two blocks count twice";
}

}  // namespace
}  // namespace kda::cuda::device
