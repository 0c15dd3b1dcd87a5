#include "tests/cuda/layout_check.hpp"
#include "tests/cuda/layout_run.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace kda::cuda::layout {
namespace {

TEST(Layout, FollowsCutlassInEveryOrder) {
  for (const Mode& mode : all_modes()) {
    const auto device = open_executor(mode.options(3));
    const auto results = run_all_layouts(*device);
    EXPECT_EQ(results.size(), 9U);
    for (const LayoutResult& result : results) EXPECT_EQ(result.wrong, "") << result.name;
  }
}

// The checks must be able to fail: each operand's layout changed on its way.
TEST(Layout, ChecksSeeSwappedRegisters) {
  const auto device = open_executor({});
  MmaOperandSet set = mma_operands(Half::kBf16);
  for (std::size_t i = 0; i < set.a.size(); i += 4) std::swap(set.a[i + 1], set.a[i + 2]);
  EXPECT_NE(check_mma(run_mma(*device, Half::kBf16, set)), "");

  set = mma_operands(Half::kBf16);
  for (std::size_t i = 0; i < set.b.size(); i += 2) std::swap(set.b[i], set.b[i + 1]);
  EXPECT_NE(check_mma(run_mma(*device, Half::kBf16, set)), "");

  std::vector<float> d = run_mma(*device, Half::kBf16, mma_operands(Half::kBf16));
  for (std::size_t i = 0; i < d.size(); i += 4) std::swap(d[i], d[i + 1]);
  EXPECT_NE(check_mma(d), "");

  EXPECT_NE(check_mma(run_mma(*device, Half::kF16, mma_operands(Half::kBf16))), "")
      << "bf16 taken for f16";
  EXPECT_NE(check_ldmatrix(4, false, run_ldmatrix(*device, 4, true)), "");
  EXPECT_NE(check_ldmatrix(4, true, run_ldmatrix(*device, 4, false)), "");
  EXPECT_NE(check_movmatrix(movmatrix_operands().in), "");
}

}  // namespace
}  // namespace kda::cuda::layout
