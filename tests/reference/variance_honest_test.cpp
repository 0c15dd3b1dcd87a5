// Honest kernels keep the bound on every kind of input, and do not waste it; wrong results do not
// keep it. The full table and 2000 drawn cases: variance_shares, docs/bound.md.

#include "tests/reference/honest_kernel.hpp"
#include "tests/reference/input_families.hpp"
#include "tests/reference/judged_inputs.hpp"

#include <string>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

bool in_range(const HonestKernel& kernel, const InputFamily& family) {
  return kernel.operands != Round::kF16 || family.f16_range;
}

/// False for keys near each other at beta 1.98 with 16-bit operands: sigma is over a tenth of the
/// values there and judges nothing.
bool well_conditioned(const HonestKernel& kernel, const InputFamily& family) {
  return kernel.operands == Round::kNone || family.name != "near-collinear, beta 1.98";
}

void expect_accepted(const ZReport& report, const std::string& what) {
  EXPECT_TRUE(report.accepted()) << what << "\no " << report.o.text() << "\nfinal_state "
                                 << report.final_state.text() << "\nh " << report.h.text();
}

TEST(VarianceHonest, EveryFamilyIsAccepted) {
  for (const InputFamily& family : input_families()) {
    if (family.limit) continue;
    const KdaInputs inputs =
        family.make({.T = 140, .H = 1, .HV = 1, .K = 32, .V = 16}, 500, Dtype::kBf16);
    const Judged judged(inputs);
    for (const HonestKernel& kernel : honest_kernels()) {
      if (!in_range(kernel, family) || !well_conditioned(kernel, family)) continue;
      const ZReport report =
          judged.judge(run(kernel, judged.problem, judged.semantics), formats_of(kernel));
      expect_accepted(report, std::string(family.name) + ", " + kernel.name);
    }
  }
}

/// 1 + g is a number of f32, and exp(g) loses what it has above it, token after token.
TEST(VarianceHonest, SmallDecaysInFewBitsAreAccepted) {
  KdaInputs inputs = random_inputs({.T = 2000, .K = 16, .V = 8}, 3, Dtype::kBf16);
  for (std::int64_t i = 0; i < inputs.g.size(); ++i) {
    inputs.g.store(i, -0x1p-13 - 0x1p-20 * static_cast<double>(37 * i % 128));  // eight bits
  }
  for (std::int64_t i = 0; i < inputs.k.size(); ++i) {
    if (i % 16 >= 8) inputs.k.store(i, 0);  // channels that nothing is written into
  }
  inputs.initial_state = random_state(inputs.semantics(), 5);
  const Judged judged(inputs);
  for (const HonestKernel& kernel : honest_kernels()) {
    if (kernel.operands != Round::kNone || kernel.state != Round::kNone) continue;
    const Outputs got = run(kernel, judged.problem, judged.semantics);
    reference::Formats formats = formats_of(kernel);
    expect_accepted(judged.judge(got, formats), kernel.name);
    if (kernel.chunk == 1) formats.block = 1;
    expect_accepted(judged.judge(got, formats), kernel.name + ", block stated");
  }
}

TEST(VarianceHonest, DrawnCasesAreAccepted) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const DrawnCase drawn = draw_case(seed);
    const Judged judged(drawn.inputs);
    for (const HonestKernel& kernel : honest_kernels()) {
      if (!in_range(kernel, *drawn.family)) continue;
      if (!well_conditioned(kernel, *drawn.family)) continue;
      const ZReport report =
          judged.judge(run(kernel, judged.problem, judged.semantics), formats_of(kernel));
      expect_accepted(report, "seed " + std::to_string(seed) + ", " +
                                  std::string(drawn.family->name) + ", " + kernel.name);
    }
  }
}

TEST(VarianceHonest, TheBoundIsNotWasted) {
  const KdaInputs inputs = input_families().front().make(
      {.T = 200, .H = 1, .HV = 1, .K = 64, .V = 64}, 600, Dtype::kBf16);
  const Judged judged(inputs);
  for (const HonestKernel& kernel : honest_kernels()) {
    if (kernel.operands == Round::kNone) continue;  // f32: room for every order of summation
    const ZReport report =
        judged.judge(run(kernel, judged.problem, judged.semantics), formats_of(kernel));
    EXPECT_GE(report.o.rms, 0.25) << kernel.name;
    EXPECT_LE(report.o.rms, 1.15) << kernel.name;
    EXPECT_GE(report.o.median, 0.04 * kElementLimit) << kernel.name;
  }
}

/// One wrong element, however small beside its tensor, is a number of sigmas that follows from its
/// own row, not from the largest value.
TEST(VarianceHonest, WrongResultsAreRejected) {
  const KdaInputs inputs = input_families().front().make(
      {.T = 100, .H = 1, .HV = 2, .K = 32, .V = 32}, 700, Dtype::kBf16);
  const Judged judged(inputs);
  const auto rejects = [&](const auto& change) {
    Outputs got = judged.exact;
    change(got);
    return !judged.judge(got, reference::default_formats(Dtype::kBf16, Dtype::kBf16)).accepted();
  };
  EXPECT_FALSE(rejects([](Outputs&) {}));
  EXPECT_TRUE(rejects([](Outputs& got) { got.o = Tensor(Dtype::kF64, got.o.shape()); }));
  EXPECT_TRUE(rejects([](Outputs& got) {
    const std::int64_t size = got.o.size();
    for (std::int64_t i = size - 32; i < size; ++i) {
      got.o.store(i, 1.1 * load(got.o.view(), i));  // one row of one head, 10% off
    }
  }));
  EXPECT_TRUE(rejects(
      [](Outputs& got) { got.final_state->store(40, -load(got.final_state->view(), 40)); }));
  EXPECT_TRUE(rejects([&](Outputs& got) {
    for (std::int64_t i = 0; i < 32 * 32; ++i) {
      got.h->store(i, load(got.h->view(), i) * (1 + 0x1p-20));  // must be the initial state
    }
  }));
}

}  // namespace
}  // namespace kda::tests
