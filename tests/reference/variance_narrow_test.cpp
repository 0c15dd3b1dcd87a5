// The variance bound in f32, which formats with 16-bit operands get, is that in f64 to 2e-4 of
// every deviation, never 0 where that is not, whatever the range of the inputs.

#include "reference/variance_head.hpp"
#include "tests/reference/input_families.hpp"
#include "tests/reference/kda_cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using reference::BoundBlock;
using reference::BoundFactors;
using reference::Formats;
using reference::HeadDeviation;
using reference::VarianceKernel;
using reference::VarianceKernels;

/// Refuses every block, as f32 does that cannot hold one.
const VarianceKernel kRefusing{[](int, int, int) { return 0L; }, [](const BoundBlock&, void*) {},
                               [](BoundBlock&, const BoundFactors&, void*) { return false; },
                               [](BoundBlock&, void*) {}};

struct InstructionKernels {
  reference::InstructionSet set;
  const VarianceKernel& wide;
  const VarianceKernel& narrow;
};

const std::vector<InstructionKernels>& all_kernels() {
  using reference::InstructionSet;
  static const std::vector<InstructionKernels> kernels{
      {InstructionSet::kBaseline, reference::kVarianceBaseline, reference::kNarrowVarianceBaseline},
      {InstructionSet::kAvx2, reference::kVarianceAvx2, reference::kNarrowVarianceAvx2},
      {InstructionSet::kAvx512, reference::kVarianceAvx512, reference::kNarrowVarianceAvx512},
  };
  return kernels;
}

/// Largest |got / want - 1|; infinite where one alone is 0 or either is not a number.
double difference(const std::vector<double>& got, const std::vector<double>& want) {
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i]) continue;
    const double d = want[i] > 0 && got[i] > 0 ? std::abs(got[i] / want[i] - 1)
                                               : std::numeric_limits<double>::infinity();
    most = d <= most ? most : d;
  }
  return most;
}

/// How many deviations there were, and how many differed at all: those that f32 made.
struct Compared {
  std::size_t deviations = 0;
  std::size_t narrow = 0;
};

void compare(const KdaInputs& inputs, const Formats& formats, const InstructionKernels& kernels,
             const std::string& what, Compared& compared) {
  const Problem problem = inputs.problem();
  const Semantics semantics = inputs.semantics();
  const VarianceKernels both{kernels.wide, kernels.narrow};
  const VarianceKernels wide_only{kernels.wide, kRefusing};
  reference::VarianceHead narrow(problem, semantics, formats, both);
  reference::VarianceHead wide(problem, semantics, formats, wide_only);
  for (std::int64_t head = 0; head < semantics.N() * semantics.HV; ++head) {
    const HeadDeviation got = narrow.run(head / semantics.HV, head % semantics.HV);
    const HeadDeviation want = wide.run(head / semantics.HV, head % semantics.HV);
    constexpr double kLimit = 2e-4;
    ASSERT_LE(difference(got.o, want.o), kLimit) << what;
    ASSERT_LE(difference(got.final_state, want.final_state), kLimit) << what;
    ASSERT_LE(difference(got.h, want.h), kLimit) << what;
    for (std::size_t i = 0; i < got.o.size(); ++i) {
      if (got.o[i] != want.o[i]) ++compared.narrow;
    }
    compared.deviations += got.o.size();
  }
}

std::vector<Formats> narrow_formats() {
  const Formats bf16 = reference::default_formats(Dtype::kBf16, Dtype::kBf16);
  Formats state = bf16;
  state.state = reference::kRoundBf16;
  Formats fine_solve = bf16;
  fine_solve.triangle = reference::kRoundF32;
  fine_solve.solve = reference::kRoundF32;
  fine_solve.block = 32;
  return {bf16, reference::default_formats(Dtype::kF16, Dtype::kF16), state, fine_solve};
}

void compare_all(const KdaInputs& inputs, const std::string& what, Compared& compared) {
  const auto& sets = reference::available_instruction_sets();
  for (const InstructionKernels& kernels : all_kernels()) {
    if (std::ranges::find(sets, kernels.set) == sets.end()) continue;
    int index = 0;
    for (const Formats& formats : narrow_formats()) {
      compare(inputs, formats, kernels,
              what + ", formats " + std::to_string(index++) + ", " +
                  std::string(reference::name(kernels.set)),
              compared);
    }
  }
}

TEST(VarianceNarrow, AgreesOnEveryFamily) {
  for (const InputFamily& family : input_families()) {
    Compared compared;
    const std::string name(family.name);
    compare_all(family.make({.T = 130, .K = 40, .V = 24}, 40, Dtype::kBf16), name, compared);
    const Dtype dtype = family.f16_range ? Dtype::kF16 : Dtype::kBf16;
    compare_all(family.make({.T = 70, .K = 16, .V = 33}, 41, dtype), name, compared);
    // A state that nobody writes to decays out of the range; with any other family f32 comes in.
    if (family.name != "beta 0") {
      EXPECT_GT(compared.narrow, 0U) << name;
    }
    if (family.name == "ordinary") {
      EXPECT_GT(compared.narrow, compared.deviations * 9 / 10);
    }
  }
}

TEST(VarianceNarrow, AgreesOnOptionsAndHardCases) {
  std::vector<NamedCase> cases = option_cases();
  for (NamedCase& hard : hard_cases()) cases.push_back(std::move(hard));
  Compared compared;
  for (const NamedCase& named : cases) compare_all(named.inputs, named.name, compared);
  EXPECT_GT(compared.narrow, compared.deviations / 2);
}

TEST(VarianceNarrow, AgreesOnDrawnCases) {
  Compared compared;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const DrawnCase drawn = draw_case(seed);
    compare_all(drawn.inputs,
                "seed " + std::to_string(seed) + ", " + std::string(drawn.family->name), compared);
  }
  EXPECT_GT(compared.narrow, compared.deviations / 2);
}

/// Values, keys and gates at the ends of what f32 inputs hold.
TEST(VarianceNarrow, AgreesAtTheEndsOfTheRange) {
  Compared compared;
  for (const double scale : {1e-37, 1e-30, 1e-15, 1e10, 1e25, 1e37}) {
    KdaInputs inputs = random_inputs({.T = 70, .K = 9, .V = 5}, 50, Dtype::kBf16);
    inputs.initial_state = random_state(inputs.semantics(), 51);
    const std::vector<double> v = to_f64(inputs.v.view());
    const std::vector<double> S = to_f64(inputs.initial_state->view());
    const auto scaled = [&](const std::vector<double>& from) {
      return [&, scale](std::int64_t i) { return scale * from[static_cast<std::size_t>(i)]; };
    };
    fill(inputs.v, scaled(v));
    compare_all(inputs, "v * " + std::to_string(std::log10(scale)), compared);
    fill(*inputs.initial_state, scaled(S));
    compare_all(inputs, "v, state * " + std::to_string(std::log10(scale)), compared);
    inputs.v = uniform(Dtype::kBf16, inputs.v.shape(), 52, -1, 1);
    compare_all(inputs, "state * " + std::to_string(std::log10(scale)), compared);
    // Everything that was known is forgotten, from one token to the next.
    for (std::int64_t c = 0; c < 9; ++c) inputs.g.store(30 * 9 + c, c % 2 == 0 ? -INFINITY : -90);
    compare_all(inputs, "state * " + std::to_string(std::log10(scale)) + ", reset", compared);
    for (std::int64_t i = 31; i < 70; ++i) inputs.beta.store(i, 0);
    compare_all(inputs, "state * " + std::to_string(std::log10(scale)) + ", reset, pads", compared);
  }
  for (const double length : {1e-18, 1e-6, 1e-2, 1.3}) {
    KdaInputs inputs = random_inputs({.T = 70, .K = 9, .V = 5}, 53, Dtype::kBf16);
    const std::vector<double> k = to_f64(inputs.k.view());
    fill(inputs.k, [&](std::int64_t i) { return length * k[static_cast<std::size_t>(i)]; });
    compare_all(inputs, "k * " + std::to_string(length), compared);
  }
  EXPECT_GT(compared.narrow, 0U);
}

}  // namespace
}  // namespace kda::tests
