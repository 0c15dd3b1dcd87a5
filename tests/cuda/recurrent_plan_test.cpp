#include "cuda/recurrent_plan.hpp"

#include "cuda/recurrent_variants.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace kda::cuda {
namespace {

RecurrentPlan plan(std::int64_t N, std::int64_t HV, std::int64_t K, std::int64_t V,
                   bool table = false) {
  return plan_recurrent({N, HV, K, V, StateLayout::kKV, Dtype::kF32, table});
}

TEST(RecurrentPlan, OneBlockForSequenceHeadAnd32Columns) {
  const RecurrentPlan p = plan(3, 4, 128, 128);
  EXPECT_EQ(p.num_blocks, 3 * 4 * 4);
  EXPECT_EQ(p.shape.grid.x, 48U);
  EXPECT_EQ(p.shape.grid.y, 1U);
  EXPECT_EQ(p.shape.block.x, 128U);
  EXPECT_EQ(p.workspace_bytes, 0U);
  EXPECT_EQ(plan(1, 1, 1, 33).num_blocks, 2);
  EXPECT_EQ(plan(1, 1, 1, 32).num_blocks, 1);
  EXPECT_EQ(plan(5, 1, 1, 1, true).workspace_bytes, 5 * sizeof(SequenceEntry));
}

TEST(RecurrentPlan, RoundsKUpToACompiledSize) {
  for (const auto& [k, padded] :
       {std::pair{1, 64}, {64, 64}, {65, 128}, {128, 128}, {129, 256}, {256, 256}}) {
    EXPECT_EQ(plan(1, 1, k, 1).variant.padded_k, padded);
  }
}

TEST(RecurrentPlan, ManySequenceHeadsGoOnInX) {
  const RecurrentPlan p = plan(70000, 64, 128, 128);
  EXPECT_EQ(p.num_blocks, 70000LL * 64 * 4);
  EXPECT_EQ(p.shape.grid.x, 17920000U);
  EXPECT_EQ(p.shape.grid.y, 1U);
}

TEST(RecurrentPlan, MoreThanAGridsXGoOnInY) {
  const RecurrentPlan p = plan(std::int64_t{1} << 28, 16, 128, 128);
  EXPECT_EQ(p.num_blocks, std::int64_t{1} << 34);
  EXPECT_EQ(p.shape.grid.x, simt::kMaxGridX);
  EXPECT_EQ(p.shape.grid.y, 9U);
  const std::int64_t launched = std::int64_t{p.shape.grid.x} * p.shape.grid.y;
  EXPECT_GE(launched, p.num_blocks);
  EXPECT_LT(launched - p.num_blocks, p.shape.grid.x) << "no row of the grid is idle";
}

TEST(RecurrentPlan, RefusesMoreThanAGridHolds) {
  for (const auto& [n, hv] : {std::pair{std::int64_t{1} << 50, std::int64_t{1}},
                              {std::int64_t{1} << 40, std::int64_t{1} << 40}}) {
    try {
      static_cast<void>(plan(n, hv, 128, 128));
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kShapeMismatch);
    }
  }
}

TEST(RecurrentPlan, NothingToDoIsNoLaunch) { EXPECT_EQ(plan(0, 4, 128, 128).num_blocks, 0); }

TEST(RecurrentPlan, PrintsItself) {
  EXPECT_EQ(plan_recurrent({2, 3, 100, 40, StateLayout::kVK, Dtype::kBf16, true}).text(),
            "recurrent state bf16 [V,K] K<=128 grid (12,1,1) block (128,1,1) blocks 12 workspace "
            "64");
}

TEST(RecurrentPlan, EveryVariantHasAKernelOfItsOwn) {
  std::vector<void (*)(void*)> bodies;
  for (const Dtype state : {Dtype::kF32, Dtype::kBf16}) {
    for (const StateLayout layout : {StateLayout::kKV, StateLayout::kVK}) {
      for (const int k : {64, 128, 256}) {
        EXPECT_EQ(recurrent_index(state == Dtype::kBf16, layout == StateLayout::kKV, k),
                  bodies.size());
        bodies.push_back(recurrent_kernel_forms({state, layout, k}).cpu);
      }
    }
  }
  std::sort(bodies.begin(), bodies.end());
  EXPECT_EQ(std::unique(bodies.begin(), bodies.end()), bodies.end());
}

}  // namespace
}  // namespace kda::cuda
