// One key over and over and a 16-bit T: its rounding errors add with their signs, which once made
// honest kernels fail. `variance_shares repeated` runs more of the same.

#include "tests/reference/honest_kernel.hpp"
#include "tests/reference/input_families.hpp"
#include "tests/reference/judged_inputs.hpp"
#include "tests/reference/repeated_keys.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

/// Kernels of which T has 16 bits.
std::vector<HonestKernel> coarse_kernels() {
  std::vector<HonestKernel> kernels = honest_kernels();
  std::erase_if(kernels, [](const HonestKernel& kernel) {
    return kernel.triangle != Round::kBf16 && kernel.triangle != Round::kF16;
  });
  return kernels;
}

void expect_accepted(const RepeatedKeys& kind, std::uint64_t seed) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
    const KdaInputs inputs = make(kind, seed, dtype);
    const Judged judged(inputs);
    for (const HonestKernel& kernel : coarse_kernels()) {
      if ((kernel.operands == Round::kF16) != (dtype == Dtype::kF16)) continue;
      const ZReport report =
          judged.judge(run(kernel, judged.problem, judged.semantics), formats_of(kernel));
      EXPECT_TRUE(report.accepted())
          << kind.text() << ", seed " << seed << ", " << kernel.name << "\no " << report.o.text()
          << "\nfinal_state " << report.final_state.text() << "\nh " << report.h.text();
    }
  }
}

/// Seeds that failed with chunks of 64, of 32, of 16 and in f16 while every rounding counted as
/// independent.
TEST(VarianceRepeated, HonestKernelsKeepTheBound) {
  for (const std::uint64_t seed : {500U, 1700U, 2700U, 3000U, 7200U, 7500U, 8800U})
    expect_accepted({}, seed);
}

TEST(VarianceRepeated, HonestKernelsKeepTheBoundOnEveryKind) {
  std::uint64_t seed = 0;
  for (const double beta : {0.1, 0.3, 0.5, 1.0}) {
    expect_accepted({.T = 200, .V = 16, .beta = beta}, ++seed);
    expect_accepted({.T = 200, .V = 16, .beta = beta, .initial_state = true}, ++seed);
    expect_accepted({.V = 16, .beta = beta, .query_is_key = false}, ++seed);
    expect_accepted({.V = 16, .beta = beta, .constant_gate = true}, ++seed);
  }
  expect_accepted({.K = 16, .V = 16}, ++seed);
  expect_accepted({.K = 128, .V = 16}, ++seed);
  expect_accepted({.T = 600, .V = 16}, ++seed);
  expect_accepted({.V = 16, .period = 2}, ++seed);
  expect_accepted({.T = 300, .V = 16, .beta = 0.6, .turn = 64}, ++seed);
}

reference::Formats formats(Dtype triangle) {
  reference::Formats formats = reference::default_formats(Dtype::kBf16, Dtype::kBf16);
  formats.triangle = reference::rounding_of(triangle);
  return formats;
}

/// Mean of sigma^2 of o with T in `coarse` over that with T in f32.
double growth(const KdaInputs& inputs, Dtype coarse) {
  const Judged judged(inputs);
  std::array<double, 2> sums{};
  for (std::size_t i = 0; i < 2; ++i) {
    const reference::Deviations sigma = reference::deviations(
        judged.problem, judged.semantics, formats(i == 0 ? coarse : Dtype::kF32));
    for (const double x : to_f64(sigma.o.view())) sums.at(i) += x * x;
  }
  return sums[0] / sums[1];
}

/// Roundings that repeat cost several times what the same ones cost where they do not; other keys
/// cost what they did.
TEST(VarianceRepeated, OnlyRepeatedKeysPay) {
  EXPECT_GT(growth(make({.V = 16}, 1, Dtype::kBf16), Dtype::kBf16), 4);
  for (const InputFamily& family : input_families()) {
    if (family.name != "ordinary" && family.name != "slow gate" && family.name != "no decay") {
      continue;
    }
    const KdaInputs inputs = family.make({.T = 130, .K = 64, .V = 16}, 1, Dtype::kBf16);
    EXPECT_LT(growth(inputs, Dtype::kBf16), 3) << family.name;
  }
}

/// What T repeats must be wide enough for honest kernels and no wider: a wrong one still fails.
TEST(VarianceRepeated, WrongResultsAreRejected) {
  const KdaInputs inputs = make({}, 1, Dtype::kBf16);
  const Judged judged(inputs);
  const auto rejects = [&](const auto& change) {
    Outputs got = judged.exact;
    change(got);
    return !judged.judge(got, reference::default_formats(Dtype::kBf16, Dtype::kBf16)).accepted();
  };
  EXPECT_FALSE(rejects([](Outputs&) {}));
  EXPECT_TRUE(rejects([](Outputs& got) {
    for (std::int64_t i = 100 * 32; i < 101 * 32; ++i) got.o.store(i, 1.2 * load(got.o.view(), i));
  }));
  EXPECT_TRUE(rejects([](Outputs& got) {
    for (std::int64_t i = 0; i < got.final_state->size(); ++i) {
      got.final_state->store(i, 1.5 * load(got.final_state->view(), i));
    }
  }));
}

/// A new sequence knows nothing of the one before.
TEST(VarianceRepeated, SequencesAreIndependent) {
  KdaInputs both = make({.T = 200, .K = 16, .V = 16}, 3, Dtype::kBf16);
  both.cu_seqlens = bounds({0, 90, 200});
  const reference::Formats bf16 = formats(Dtype::kBf16);
  const auto sigma = [&](const KdaInputs& inputs) {
    const Problem problem = inputs.problem();
    return reference::deviations(problem, inputs.semantics(), bf16,
                                 {.threads = 1, .instructions = {}});
  };
  const std::vector<double> whole = to_f64(sigma(both).o.view());
  KdaInputs second = cut(both, 90, 200);
  const std::vector<double> alone = to_f64(sigma(second).o.view());
  ASSERT_EQ(alone.size(), static_cast<std::size_t>(110 * 16));
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), whole.begin() + std::int64_t{90} * 16));
}

}  // namespace
}  // namespace kda::tests
