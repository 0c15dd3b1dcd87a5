#include "reference/recurrent.hpp"

#include "tests/reference/kda_cases.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace kda::reference {
namespace {

using namespace kda::tests;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Outputs run(const KdaInputs& inputs) { return recurrent(inputs.problem(), inputs.semantics()); }

/// One token, worked by hand: K = V = 2, S0 = [[1,2],[3,4]], exp(g) = (1/2, 1/4).
KdaInputs hand_case() {
  KdaInputs inputs = zeros({.K = 2, .V = 2});
  inputs.q = f32({1, 1, 1, 2}, {1, 1});
  inputs.k = f32({1, 1, 1, 2}, {1, 0});
  inputs.v = f32({1, 1, 1, 2}, {10, 20});
  inputs.beta = f32({1, 1, 1}, {0.5});
  inputs.initial_state = f32({1, 1, 2, 2}, {1, 2, 3, 4});
  inputs.options.scale = 1.0;
  return inputs;
}

/// log 1/2 and log 1/4 exist in f64 only to the accuracy that makes the decays exact, which no
/// contract accepts: swapped in after the check.
Outputs run_with_exact_decay(KdaInputs inputs) {
  const Semantics semantics = inputs.semantics();
  inputs.g = Tensor(Dtype::kF64, {1, 1, 1, 2});
  inputs.g.store(0, std::log(0.5));
  inputs.g.store(1, std::log(0.25));
  return recurrent(inputs.problem(), semantics);
}

TEST(Recurrent, HandCaseIsExact) {
  const Outputs out = run_with_exact_decay(hand_case());
  EXPECT_EQ(to_f64(out.o.view()), (std::vector<double>{6, 11.5}));
  EXPECT_EQ(to_f64(out.final_state->view()), (std::vector<double>{5.25, 10.5, 0.75, 1}));
  EXPECT_EQ(to_f64(out.h->view()), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Recurrent, HandCaseTellsATransposedStateApart) {
  KdaInputs inputs = hand_case();
  inputs.options.state_v_first = true;  // the same numbers read as [V,K]
  const Outputs out = run_with_exact_decay(inputs);
  EXPECT_EQ(to_f64(out.o.view()), (std::vector<double>{5.75, 11.75}));
  EXPECT_EQ(to_f64(out.final_state->view()), (std::vector<double>{5.25, 0.5, 10.75, 1}));
}

TEST(Recurrent, BetaLogitIsNotRounded) {
  KdaInputs inputs = zeros({.K = 2, .V = 1}, Dtype::kBf16);
  inputs.options.use_beta_sigmoid_in_kernel = true;
  inputs.k.store(0, 1);
  inputs.v.store(0, 1);
  inputs.beta = Tensor(Dtype::kBf16, {1, 1, 1});
  inputs.beta.store(0, 0.5);
  EXPECT_NEAR(to_f64(run(inputs).final_state->view())[0], 0.62245933120185459, 1e-15);
}

TEST(Recurrent, SlowDecayIsNotLost) {
  KdaInputs inputs = zeros({.T = 4096, .K = 1, .V = 1});
  const double g = std::log(0.99992);
  fill(inputs.g, [=](std::int64_t) { return g; });
  inputs.initial_state = f32({1, 1, 1, 1}, {1});
  const auto g_stored = static_cast<double>(static_cast<float>(g));
  EXPECT_NEAR(to_f64(run(inputs).final_state->view())[0], std::exp(4096 * g_stored), 1e-12);
  EXPECT_NEAR(std::exp(4096 * g_stored), 0.7206, 1e-4);
}

TEST(Recurrent, IdenticalKeysKeepTheValue) {
  KdaInputs inputs = zeros({.T = 64, .K = 16, .V = 16});
  fill(inputs.q, [](std::int64_t i) { return i % 16 == 0 ? 1 : 0; });
  fill(inputs.k, [](std::int64_t i) { return i % 16 == 0 ? 1 : 0; });
  fill(inputs.v, [](std::int64_t i) { return static_cast<double>(i % 16 + 1); });
  fill(inputs.g, [](std::int64_t) { return -3.07e-5; });
  fill(inputs.beta, [](std::int64_t) { return 0.9; });
  const std::vector<double> S = to_f64(run(inputs).final_state->view());
  for (std::size_t v = 0; v < 16; ++v) {
    EXPECT_NEAR(S[v], 0.9999966 * static_cast<double>(v + 1), 1e-7 * static_cast<double>(v + 1));
    EXPECT_EQ(S[16 + v], 0);
  }
}

TEST(Recurrent, AgreesWithLongDouble) {
  for (const auto& cases : {option_cases(), hard_cases()}) {
    for (const auto& [name, inputs] : cases) {
      const Semantics semantics = inputs.semantics();
      const Outputs want = recurrent_long_double(inputs.problem(), semantics);
      EXPECT_LE(relative_error(run(inputs), want, semantics), 2e-14) << name;
    }
  }
}

TEST(Recurrent, F32PeerIsNearAndRoundsToTheDtypeOfV) {
  for (const auto& [name, inputs] : option_cases()) {
    const Outputs got = recurrent_f32(inputs.problem(), inputs.semantics());
    EXPECT_EQ(got.o.dtype(), inputs.v.dtype()) << name;
    EXPECT_EQ(got.final_state->dtype(), Dtype::kF32) << name;
    EXPECT_EQ(got.h->dtype(), Dtype::kF32) << name;
    const double bound = inputs.v.dtype() == Dtype::kF32 ? 2e-6 : 4e-3;
    EXPECT_LE(relative_error(got, run(inputs), inputs.semantics()), bound) << name;
  }
}

TEST(Recurrent, MinusInfinityForgetsEverything) {
  KdaInputs inputs = random_inputs({.T = 3}, 1);
  inputs.initial_state = random_state(inputs.semantics(), 2);
  for (std::int64_t k = 0; k < 8; ++k) inputs.g.store(8 + k, -kInf);  // at token 1
  KdaInputs fresh = cut(inputs, 1, 3);
  fresh.initial_state.reset();
  const Outputs got = run(inputs);
  EXPECT_TRUE(same_bits(tokens(got.o, 1, 3), run(fresh).o));
  EXPECT_TRUE(same_bits(*got.final_state, *run(fresh).final_state));
}

TEST(Recurrent, VarlenEqualsSeparateRuns) {
  for (const std::vector<std::int64_t>& cu : std::vector<std::vector<std::int64_t>>{
           {0, 63, 128}, {0, 1, 2, 66, 67}, {0, 0, 5}, {0, 5, 5, 9}, {0, 0}}) {
    KdaInputs packed = random_inputs({.T = cu.back(), .H = 2, .HV = 4}, 3);
    packed.cu_seqlens = bounds(cu);
    packed.initial_state = random_state(packed.semantics(), 4);
    const Semantics semantics = packed.semantics();
    const Outputs together = run(packed);
    for (std::size_t n = 0; n + 1 < cu.size(); ++n) {
      KdaInputs alone = cut(packed, cu[n], cu[n + 1]);
      alone.initial_state = slot(*packed.initial_state, static_cast<std::int64_t>(n));
      const Outputs want = run(alone);
      EXPECT_TRUE(same_bits(tokens(together.o, cu[n], cu[n + 1]), want.o));
      EXPECT_TRUE(
          same_bits(slot(*together.final_state, static_cast<std::int64_t>(n)), *want.final_state));
      for (std::int64_t c = 0; c < want.h->shape()[0]; ++c) {
        EXPECT_TRUE(
            same_bits(slot(*together.h, semantics.sequences[n].first_chunk + c), slot(*want.h, c)));
      }
    }
  }
}

TEST(Recurrent, SplitAnywhereContinuesFromTheState) {
  KdaInputs whole = random_inputs({.T = 9, .H = 1, .HV = 2}, 5);
  whole.initial_state = random_state(whole.semantics(), 6);
  const Outputs want = run(whole);
  for (std::int64_t at = 0; at <= 9; ++at) {
    const Outputs first = run(cut(whole, 0, at));
    KdaInputs rest = cut(whole, at, 9);
    const Semantics semantics = rest.semantics();
    rest.initial_state = first.final_state;  // f64, which no contract accepts
    const Outputs second = recurrent(rest.problem(), semantics);
    EXPECT_TRUE(same_bits(first.o, tokens(want.o, 0, at))) << at;
    EXPECT_TRUE(same_bits(second.o, tokens(want.o, at, 9))) << at;
    EXPECT_TRUE(same_bits(*second.final_state, *want.final_state)) << at;
  }
}

TEST(Recurrent, BatchRowsAreIndependentSequences) {
  KdaInputs inputs = random_inputs({.B = 3, .T = 4, .H = 2, .HV = 2}, 7);
  inputs.initial_state = random_state(inputs.semantics(), 8);
  const Outputs want = run(inputs);
  // NaN in batch row 1 stays there.
  for (std::int64_t i = 0; i < 8; ++i) inputs.v.store(4 * 2 * 8 + i, kNan);
  const Outputs got = run(inputs);
  EXPECT_TRUE(same_bits(slot(got.o, 0), slot(want.o, 0)));
  EXPECT_TRUE(same_bits(slot(got.o, 2), slot(want.o, 2)));
  EXPECT_FALSE(same_bits(slot(got.o, 1), slot(want.o, 1)));
  EXPECT_TRUE(same_bits(slot(*got.final_state, 2), slot(*want.final_state, 2)));
}

TEST(Recurrent, RowsOfNoSequenceAreNeverRead) {
  KdaInputs inputs = random_inputs({.T = 9 + 28}, 9);
  inputs.cu_seqlens = bounds({0, 4, 9});
  const Outputs want = run(inputs);
  for (Tensor* x : {&inputs.q, &inputs.k, &inputs.v, &inputs.g, &inputs.beta}) {
    const std::int64_t row = x->size() / (9 + 28);
    for (std::int64_t i = 9 * row; i < x->size(); ++i) x->store(i, kNan);
  }
  const Outputs got = run(inputs);
  EXPECT_TRUE(same_bits(got, want));
  const std::vector<double> rest = to_f64(tokens(got.o, 9, 37).view());
  EXPECT_EQ(rest, std::vector<double>(rest.size(), 0.0));
}

TEST(Recurrent, PadRowsLeaveTheStateAlone) {
  KdaInputs inputs = random_inputs({.T = 5}, 10);
  for (std::int64_t i = 24; i < 40; ++i) {
    inputs.k.store(i, 0);
    inputs.v.store(i, 0);
    inputs.g.store(i, 0);
  }
  inputs.beta.store(3, 0);
  inputs.beta.store(4, 0);
  EXPECT_EQ(relative_error(*run(inputs).final_state, *run(cut(inputs, 0, 3)).final_state), 0);
}

TEST(Recurrent, IsCausalToTheBit) {
  KdaInputs inputs = random_inputs({.T = 16, .K = 16}, 11);
  fill_uniform(inputs.g, 12, -5, 0);
  const Outputs before = run(inputs);
  for (std::int64_t i = 96; i < inputs.g.size(); ++i) inputs.g.store(i, -0.01);
  EXPECT_TRUE(same_bits(tokens(run(inputs).o, 0, 6), tokens(before.o, 0, 6)));
  EXPECT_TRUE(same_bits(tokens(run(cut(inputs, 0, 7)).o, 0, 6), tokens(before.o, 0, 6)));
}

TEST(Recurrent, ReadsStridedViews) {
  const KdaInputs inputs = random_inputs({.B = 2, .T = 3, .H = 2, .HV = 2, .K = 4, .V = 4}, 13);
  const Outputs want = run(inputs);
  // q, k, v side by side in one table [B,H,T,3,4]: heads before tokens, rows of 12.
  Tensor table(Dtype::kF32, {2, 2, 3, 3, 4});
  Problem problem = inputs.problem();
  std::int64_t part = 0;
  for (TensorView* x : {&problem.q, &problem.k, &problem.v}) {
    const std::vector<double> values = to_f64(*x);
    for (std::int64_t i = 0; i < 48; ++i) {
      const std::int64_t b = i / 24;
      const std::int64_t t = i / 8 % 3;
      const std::int64_t h = i / 4 % 2;
      table.store((((b * 2 + h) * 3 + t) * 3 + part) * 4 + i % 4,
                  values[static_cast<std::size_t>(i)]);
    }
    x->data = table.data() + part * 4 * size_of(Dtype::kF32);
    x->strides = {72, 12, 36, 1};
    ++part;
  }
  EXPECT_TRUE(same_bits(recurrent(problem, check(Contract::kRecurrentKda, problem)), want));
}

TEST(Recurrent, ReadsGateParametersOfAnyShape) {
  KdaInputs inputs = random_inputs({.T = 3, .H = 2, .HV = 2, .K = 4}, 14);
  inputs.options.use_gate_in_kernel = true;
  inputs.A_log = uniform(Dtype::kF32, {2}, 15, -1, 1);
  inputs.dt_bias = uniform(Dtype::kF32, {2, 4}, 16, -1, 1);
  KdaInputs reshaped = inputs;
  reshaped.A_log = f32({1, 2, 1}, to_f64(inputs.A_log->view()));
  reshaped.dt_bias = f32({8}, to_f64(inputs.dt_bias->view()));
  EXPECT_TRUE(same_bits(run(reshaped), run(inputs)));
}

TEST(Recurrent, GateParametersAreIgnoredWithoutTheGate) {
  KdaInputs inputs = random_inputs({.T = 3}, 17);
  const Outputs want = run(inputs);
  inputs.A_log = f32({1}, {3});
  inputs.dt_bias = uniform(Dtype::kF32, {1, 8}, 18, -9, 9);
  inputs.options.lower_bound = -2.0;
  EXPECT_TRUE(same_bits(run(inputs), want));
}

TEST(Recurrent, ReturnsOnlyWhatIsAskedFor) {
  KdaInputs inputs = random_inputs({.T = 3}, 19);
  inputs.options.output_final_state = false;
  inputs.options.return_intermediate_states = false;
  const Outputs out = run(inputs);
  EXPECT_FALSE(out.final_state.has_value());
  EXPECT_FALSE(out.h.has_value());
}

TEST(Recurrent, TakesTheLargestHead) {
  const KdaInputs inputs = random_inputs({.T = 2, .K = 256, .V = 256}, 20);
  const Semantics semantics = inputs.semantics();
  const Outputs want = recurrent_long_double(inputs.problem(), semantics);
  EXPECT_LE(relative_error(run(inputs), want, semantics), 2e-14);
}

}  // namespace
}  // namespace kda::reference
