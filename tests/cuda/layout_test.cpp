#include "cuda/simt/launch.hpp"
#include "tests/cuda/layout_check.hpp"
#include "tests/cuda/layout_kernels.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <gtest/gtest.h>

namespace kda::cuda::layout {
namespace {

simt::LaunchConfig one_warp(const char* name) { return {name, {1, 1, 1}, {32, 1, 1}, 0}; }

template <bool kBf16>
std::vector<float> run_mma(const MmaOperandSet& set, const simt::Options& options) {
  std::vector<float> d(MmaOperandSet::kRuns * 32 * 4, -1.0F);
  simt::Memory memory;
  memory.map("a", set.a.data(), set.a.size() * 4);
  memory.map("b", set.b.data(), set.b.size() * 4);
  memory.map("d", d.data(), d.size() * 4);
  simt::launch(one_warp("mma"), options, memory, &mma_kernel<kBf16>,
               Global<const std::uint32_t>{set.a.data()}, Global<const std::uint32_t>{set.b.data()},
               Global<float>{d.data()}, MmaOperandSet::kRuns);
  return d;
}

template <unsigned N, bool kTransposed>
std::vector<std::uint32_t> run_ldmatrix(const simt::Options& options) {
  const auto rows = ldmatrix_rows();
  std::vector<std::uint32_t> words(32 * N);
  simt::Memory memory;
  memory.map("rows", rows.data(), rows.size() * 2);
  memory.map("words", words.data(), words.size() * 4);
  simt::launch(one_warp("ldmatrix"), options, memory, &ldmatrix_kernel<N, kTransposed>,
               Global<const std::uint16_t>{rows.data()}, Global<std::uint32_t>{words.data()});
  return words;
}

std::vector<std::uint32_t> run_movmatrix(const simt::Options& options) {
  const auto set = movmatrix_operands();
  std::vector<std::uint32_t> words(set.in.size());
  simt::Memory memory;
  memory.map("in", set.in.data(), set.in.size() * 4);
  memory.map("out", words.data(), words.size() * 4);
  simt::launch(one_warp("movmatrix"), options, memory, &movmatrix_kernel,
               Global<const std::uint32_t>{set.in.data()}, Global<std::uint32_t>{words.data()},
               MovmatrixOperandSet::kRuns);
  return words;
}

TEST(Layout, MmaFollowsCutlass) {
  for (const Mode& mode : all_modes()) {
    EXPECT_EQ(check_mma(run_mma<true>(mma_operands(Half::kBf16), mode.options(3))), "");
    EXPECT_EQ(check_mma(run_mma<false>(mma_operands(Half::kF16), mode.options(3))), "");
  }
}

TEST(Layout, LdmatrixFollowsCutlass) {
  for (const Mode& mode : all_modes()) {
    const simt::Options options = mode.options(5);
    EXPECT_EQ(check_ldmatrix(1, false, run_ldmatrix<1, false>(options)), "");
    EXPECT_EQ(check_ldmatrix(2, false, run_ldmatrix<2, false>(options)), "");
    EXPECT_EQ(check_ldmatrix(4, false, run_ldmatrix<4, false>(options)), "");
    EXPECT_EQ(check_ldmatrix(1, true, run_ldmatrix<1, true>(options)), "");
    EXPECT_EQ(check_ldmatrix(2, true, run_ldmatrix<2, true>(options)), "");
    EXPECT_EQ(check_ldmatrix(4, true, run_ldmatrix<4, true>(options)), "");
  }
}

TEST(Layout, MovmatrixTransposes) {
  for (const Mode& mode : all_modes()) {
    EXPECT_EQ(check_movmatrix(run_movmatrix(mode.options(7))), "");
  }
}

// The checks must be able to fail: each operand's layout changed on its way.
TEST(Layout, ChecksSeeSwappedRegisters) {
  MmaOperandSet set = mma_operands(Half::kBf16);
  for (std::size_t i = 0; i < set.a.size(); i += 4) std::swap(set.a[i + 1], set.a[i + 2]);
  EXPECT_NE(check_mma(run_mma<true>(set, {})), "");

  set = mma_operands(Half::kBf16);
  for (std::size_t i = 0; i < set.b.size(); i += 2) std::swap(set.b[i], set.b[i + 1]);
  EXPECT_NE(check_mma(run_mma<true>(set, {})), "");

  std::vector<float> d = run_mma<true>(mma_operands(Half::kBf16), {});
  for (std::size_t i = 0; i < d.size(); i += 4) std::swap(d[i], d[i + 1]);
  EXPECT_NE(check_mma(d), "");

  EXPECT_NE(check_mma(run_mma<false>(mma_operands(Half::kBf16), {})), "") << "bf16 taken for f16";
  EXPECT_NE(check_ldmatrix(4, false, run_ldmatrix<4, true>({})), "");
  EXPECT_NE(check_ldmatrix(4, true, run_ldmatrix<4, false>({})), "");
  EXPECT_NE(check_movmatrix(movmatrix_operands().in), "");
}

}  // namespace
}  // namespace kda::cuda::layout
