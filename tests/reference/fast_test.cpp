#include "reference/fast.hpp"

#include "reference/recurrent.hpp"
#include "reference/types/error.hpp"
#include "tests/reference/kda_cases.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace kda::reference {
namespace {

using namespace kda::tests;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

/// Every test here runs once per instruction set of this machine.
class Fast : public testing::TestWithParam<InstructionSet> {
 protected:
  static FastOptions options(int threads = 1) {
    return {.threads = threads, .instructions = GetParam()};
  }
  static Outputs run(const KdaInputs& inputs, int threads = 1) {
    return fast(inputs.problem(), inputs.semantics(), options(threads));
  }
  static double disagreement(const KdaInputs& inputs) {
    const Semantics semantics = inputs.semantics();
    return relative_error(run(inputs), recurrent(inputs.problem(), semantics), semantics);
  }
};

INSTANTIATE_TEST_SUITE_P(Isa, Fast,
                         testing::ValuesIn(available_instruction_sets().begin(),
                                           available_instruction_sets().end()),
                         [](const auto& set) { return std::string(name(set.param)); });

TEST_P(Fast, AgreesWithTheRecurrence) {
  for (const auto& cases : {option_cases(), hard_cases()}) {
    for (const auto& [name, inputs] : cases) EXPECT_LE(disagreement(inputs), 1e-12) << name;
  }
}

TEST_P(Fast, AgreesOnHeadsOfEverySize) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127, 128, 256}) {
    EXPECT_LE(disagreement(random_inputs({.T = 9, .K = size, .V = 5}, 61)), 1e-13) << "K " << size;
    EXPECT_LE(disagreement(random_inputs({.T = 9, .K = 5, .V = size}, 62)), 1e-13) << "V " << size;
  }
}

TEST_P(Fast, AgreesOnEveryLengthAroundATileAndAStep) {
  for (const std::int64_t T : {1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 68, 127, 128, 129, 200}) {
    EXPECT_LE(disagreement(random_inputs({.T = T, .K = 16, .V = 20}, 63)), 1e-13) << T;
  }
}

TEST_P(Fast, AgreesAtEveryChunkLength) {
  for (const std::int64_t chunk : {1, 3, 4, 5, 32, 63, 64, 65, 128, 500}) {
    KdaInputs inputs = random_inputs({.T = 131, .H = 1, .HV = 2}, 64);
    inputs.options.chunk_size = chunk;
    EXPECT_LE(disagreement(inputs), 1e-13) << chunk;
  }
}

TEST_P(Fast, ExponentialIsExactWhereItMustBe) {
  KdaInputs inputs = zeros({.T = 1, .K = 8, .V = 1});
  inputs.initial_state = f32({1, 1, 8, 1}, std::vector<double>(8, 1.0));
  const std::vector<double> g{0,      -std::numeric_limits<double>::infinity(),
                              -1000,  -746,
                              -745,   -708.5,
                              -1e-30, -0.6931471805599453};
  const Semantics semantics = inputs.semantics();
  inputs.g = Tensor(Dtype::kF64, {1, 1, 1, 8});  // exact values, swapped in after the check
  fill(inputs.g, [&](std::int64_t i) { return g[static_cast<std::size_t>(i)]; });
  const Outputs out = fast(inputs.problem(), semantics, options());
  const std::vector<double> decays = to_f64(out.final_state->view());
  EXPECT_EQ(decays[0], 1);
  EXPECT_EQ(decays[1], 0);
  EXPECT_EQ(decays[2], 0);
  EXPECT_EQ(decays[3], 0);
  EXPECT_EQ(decays[4], 0x1p-1074);
  EXPECT_NEAR(decays[5] / std::exp(-708.5), 1, 1e-14);
  EXPECT_EQ(decays[6], 1);
  EXPECT_NEAR(decays[7], 0.5, 1e-16);
}

TEST_P(Fast, ExponentialIsAccurateEverywhere) {
  KdaInputs inputs = zeros({.T = 1, .K = 256, .V = 1});
  inputs.initial_state = f32({1, 1, 256, 1}, std::vector<double>(256, 1.0));
  for (const double widest : {-1e-9, -0.1, -1.0, -20.0, -700.0}) {
    fill_uniform(inputs.g, 65, widest, 0);
    const std::vector<double> decays = to_f64(run(inputs).final_state->view());
    for (std::int64_t i = 0; i < 256; ++i) {
      const double want = std::exp(load(inputs.g.view(), i));
      EXPECT_NEAR(decays[static_cast<std::size_t>(i)] / want, 1, 4e-16);
    }
  }
}

TEST_P(Fast, ThreadsNeverChangeABit) {
  for (const std::int64_t heads : {1, 2, 6}) {
    KdaInputs inputs = random_inputs({.T = 150, .H = heads, .HV = heads, .K = 20, .V = 100}, 66);
    inputs.cu_seqlens = bounds({0, 70, 70, 150});
    inputs.initial_state = random_state(inputs.semantics(), 67);
    const Outputs want = run(inputs, 1);
    for (const int threads : {0, 2, 3, 7, 64}) {
      EXPECT_TRUE(same_bits(run(inputs, threads), want)) << heads << " heads, " << threads;
    }
  }
}

TEST_P(Fast, VarlenEqualsSeparateRunsToTheBit) {
  KdaInputs packed = random_inputs({.T = 130, .H = 2, .HV = 4}, 68);
  const std::vector<std::int64_t> cu{0, 1, 2, 66, 66, 130};
  packed.cu_seqlens = bounds(cu);
  const Outputs together = run(packed);
  for (std::size_t n = 0; n + 1 < cu.size(); ++n) {
    const Outputs alone = run(cut(packed, cu[n], cu[n + 1]));
    EXPECT_TRUE(same_bits(tokens(together.o, cu[n], cu[n + 1]), alone.o));
    EXPECT_TRUE(
        same_bits(slot(*together.final_state, static_cast<std::int64_t>(n)), *alone.final_state));
  }
}

TEST_P(Fast, SplitAnywhereContinuesFromTheState) {
  KdaInputs whole = random_inputs({.T = 70}, 69);
  const Outputs want = run(whole);
  for (const std::int64_t at : {0, 1, 3, 4, 5, 63, 64, 65, 69, 70}) {
    const Outputs first = run(cut(whole, 0, at));
    KdaInputs rest = cut(whole, at, 70);
    const Semantics semantics = rest.semantics();
    rest.initial_state = first.final_state;  // f64, which no contract accepts
    const Outputs second = fast(rest.problem(), semantics, options());
    EXPECT_TRUE(same_bits(first.o, tokens(want.o, 0, at))) << at;
    EXPECT_LE(relative_error(second.o, tokens(want.o, at, 70)), 1e-14) << at;
    EXPECT_LE(relative_error(*second.final_state, *want.final_state), 1e-14) << at;
  }
}

TEST_P(Fast, IsCausalToTheBit) {
  KdaInputs inputs = random_inputs({.T = 16, .K = 16}, 70);
  fill_uniform(inputs.g, 71, -5, 0);
  const Outputs before = run(inputs);
  for (std::int64_t i = 96; i < inputs.g.size(); ++i) inputs.g.store(i, -0.01);
  EXPECT_TRUE(same_bits(tokens(run(inputs).o, 0, 6), tokens(before.o, 0, 6)));
  EXPECT_TRUE(same_bits(tokens(run(cut(inputs, 0, 7)).o, 0, 6), tokens(before.o, 0, 6)));
}

TEST_P(Fast, RowsOfNoSequenceAreNeverRead) {
  KdaInputs inputs = random_inputs({.T = 9 + 28}, 72);
  inputs.cu_seqlens = bounds({0, 4, 9});
  const Outputs want = run(inputs);
  for (Tensor* x : {&inputs.q, &inputs.k, &inputs.v, &inputs.g, &inputs.beta}) {
    const std::int64_t row = x->size() / (9 + 28);
    for (std::int64_t i = 9 * row; i < x->size(); ++i) x->store(i, std::nan(""));
  }
  EXPECT_TRUE(same_bits(run(inputs), want));
}

TEST_P(Fast, NanStaysInItsHead) {
  KdaInputs inputs = random_inputs({.T = 6, .H = 3, .HV = 3}, 73);
  const Outputs want = run(inputs);
  inputs.k.store(8, std::nan(""));  // token 0, head 1
  const Outputs got = run(inputs);
  for (std::int64_t i = 0; i < got.o.size(); ++i) {
    const double value = load(got.o.view(), i);
    if (i / 8 % 3 == 1) {
      EXPECT_TRUE(std::isnan(value)) << i;
    } else {
      EXPECT_EQ(value, load(want.o.view(), i)) << i;
    }
  }
}

TEST_P(Fast, NanStaysInItsSequence) {
  KdaInputs inputs = random_inputs({.T = 5}, 79);
  inputs.cu_seqlens = bounds({0, 4, 5});  // the second fills a quarter of a step
  const Outputs want = run(inputs);
  for (std::int64_t i = 0; i < 32; ++i) inputs.v.store(i, std::nan(""));
  const Outputs got = run(inputs);
  EXPECT_TRUE(same_bits(tokens(got.o, 4, 5), tokens(want.o, 4, 5)));
  EXPECT_TRUE(same_bits(slot(*got.final_state, 1), slot(*want.final_state, 1)));
}

TEST_P(Fast, ReadsStridedViews) {
  const KdaInputs inputs = random_inputs({.T = 5, .H = 2, .HV = 2, .K = 4, .V = 4}, 74);
  KdaInputs wide = random_inputs({.T = 5, .H = 2, .HV = 2, .K = 8, .V = 8}, 75);
  Problem problem = inputs.problem();
  for (auto [from, to, view] :
       {std::tuple{&inputs.q, &wide.q, &problem.q}, std::tuple{&inputs.v, &wide.v, &problem.v},
        std::tuple{&inputs.g, &wide.g, &problem.g}}) {
    for (std::int64_t i = 0; i < from->size(); ++i) to->store(2 * i, load(from->view(), i));
    view->data = to->data();
    view->strides = {80, 16, 8, 2};
  }
  EXPECT_TRUE(same_bits(fast(problem, inputs.semantics(), options()), run(inputs)));
}

TEST_P(Fast, HandsOverEveryHeadOnce) {
  KdaInputs inputs = random_inputs({.B = 2, .T = 5, .H = 1, .HV = 3, .K = 4, .V = 40}, 76);
  inputs.options.chunk_size = 2;
  inputs.options.return_intermediate_states = false;
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  fast_by_head(inputs.problem(), inputs.semantics(), options(4), [&](const HeadResult& head) {
    ++seen[{head.n, head.hv}];
    EXPECT_EQ(head.o.size(), 5U * 40U);
    EXPECT_EQ(head.final_state.size(), 4U * 40U);
    EXPECT_TRUE(head.h.empty());
  });
  EXPECT_EQ(seen.size(), 6U);
  for (const auto& [head, times] : seen) EXPECT_EQ(times, 1);
}

TEST_P(Fast, PassesOnWhatTheSinkThrows) {
  const KdaInputs inputs = random_inputs({.T = 5, .H = 6, .HV = 6}, 77);
  for (const int threads : {1, 3}) {
    const auto call = [&] {
      fast_by_head(inputs.problem(), inputs.semantics(), options(threads),
                   [](const HeadResult&) { throw std::runtime_error("full"); });
    };
    EXPECT_THROW(call(), std::runtime_error);
  }
}

TEST(FastInstructions, AreNamedAndOrdered) {
  const auto sets = available_instruction_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), InstructionSet::kBaseline);
  EXPECT_TRUE(std::ranges::is_sorted(sets));
  EXPECT_EQ(name(InstructionSet::kBaseline), "baseline");
  EXPECT_EQ(name(InstructionSet::kAvx2), "avx2");
  EXPECT_EQ(name(InstructionSet::kAvx512), "avx512");
}

TEST(FastInstructions, RefusesWhatTheMachineLacks) {
  const KdaInputs inputs = random_inputs({}, 78);
  const FastOptions options{.instructions = static_cast<InstructionSet>(99)};
  try {
    static_cast<void>(fast(inputs.problem(), inputs.semantics(), options));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace kda::reference
