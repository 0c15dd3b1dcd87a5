#include "tests/cuda/prefill_call.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

#include <gtest/gtest.h>

// The prefill kernel on the executor stays fast enough to be run in every test.

namespace kda::cuda {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// 5 s on two cores, as time of the processor: a busy machine does not fail it.
TEST(PrefillSpeed, AThousandTokensOfFourHeads) {
  constexpr double kMost = 2 * 5;
  const tests::KdaInputs inputs = prefill_inputs(1024, 4, 61);
  const double cpu = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  const Outputs got = run_prefill_case(inputs);
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double used = cpu_seconds() - cpu;
  std::printf("T = 1024, H = 4: %.2f s, %.2f s of processor time\n", wall, used);
  EXPECT_EQ(got.o.shape()[1], 1024);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(used, kMost);
#else
  static_cast<void>(kMost);
#endif
}

}  // namespace
}  // namespace kda::cuda
