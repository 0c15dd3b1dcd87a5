#include "reference/peer_prefill.hpp"

#include "reference/chunked.hpp"
#include "reference/recurrent.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

// The prefill peer: right within what its operands allow, and every stage the exact one.

namespace kda::reference {
namespace {

using tests::KdaInputs;

/// Unit keys, K = V = 128, two value heads to a key head.
KdaInputs inputs(std::int64_t T, std::uint64_t seed) {
  KdaInputs made =
      tests::random_inputs({.T = T, .H = 1, .HV = 2, .K = 128, .V = 128}, seed, Dtype::kBf16);
  made.initial_state = tests::random_state(made.semantics(), seed + 9);
  return made;
}

/// Worst error over the largest element; o in f32, so that its own rounding does not hide others.
double error_of(const KdaInputs& made, const PeerFormats& formats) {
  KdaInputs wide = made;
  wide.v = tests::uniform(Dtype::kF32, made.v.shape(), 1, 0, 0);
  for (std::int64_t i = 0; i < wide.v.size(); ++i) wide.v.store(i, load(made.v.view(), i));
  const Problem problem = wide.problem();
  const Semantics s = check(Contract::kChunkKda, made.problem());
  return tests::relative_error(peer_prefill(problem, s, formats), recurrent(problem, s), s);
}

TEST(PeerPrefill, AsGoodAsItsOperands) {
  const KdaInputs made = inputs(200, 3);
  EXPECT_LT(error_of(made, kPeerMixed), 1e-3);
  EXPECT_LT(error_of(made, kPeerSplit), 3e-5);
  EXPECT_LT(error_of(made, kPeerBf16), 1e-2);
  // And no better: the operands are rounded indeed.
  EXPECT_GT(error_of(made, kPeerMixed), 1e-4);
  EXPECT_GT(error_of(made, kPeerSplit), 1e-6);
  EXPECT_GT(error_of(made, kPeerBf16), 1e-3);
}

TEST(PeerPrefill, EveryOption) {
  for (const bool l2norm : {false, true}) {
    for (const GateForm gate : {GateForm::kLogDecay, GateForm::kSoftplus, GateForm::kLowerBound}) {
      KdaInputs made = inputs(70, 5);
      made.options.use_qk_l2norm_in_kernel = l2norm;
      made.options.state_v_first = l2norm;
      made.options.use_gate_in_kernel = gate != GateForm::kLogDecay;
      if (gate == GateForm::kLowerBound) made.options.lower_bound = -5;
      made.options.use_beta_sigmoid_in_kernel = gate == GateForm::kSoftplus;
      made.A_log = tests::uniform(Dtype::kF32, {2}, 7, -1, 1);
      made.dt_bias = tests::uniform(Dtype::kF32, {2, 128}, 8, -3, 1);
      EXPECT_LT(error_of(made, kPeerSplit), 3e-5) << l2norm << static_cast<int>(gate);
      EXPECT_LT(error_of(made, kPeerMixed), 1e-3) << l2norm << static_cast<int>(gate);
    }
  }
}

TEST(PeerPrefill, GatesThatOverflowFactoredForms) {
  for (const double g : {-2.8, -5.6, -12.0, -1000.0, -HUGE_VAL}) {
    KdaInputs made = inputs(130, 11);
    tests::fill(made.g, [&](std::int64_t i) { return i % 3 == 0 ? g : -1e-4; });
    EXPECT_LT(error_of(made, kPeerMixed), 1e-3) << g;
  }
}

TEST(PeerPrefill, StatesKeepLayoutAndOutputsTheDtypeOfV) {
  KdaInputs made = inputs(65, 13);
  const Semantics s = check(Contract::kChunkKda, made.problem());
  const Outputs out = peer_prefill(made.problem(), s);
  EXPECT_EQ(out.o.dtype(), Dtype::kBf16);
  EXPECT_EQ(out.final_state->dtype(), Dtype::kF32);
  EXPECT_EQ(out.h->shape(), (Shape{2, 2, 128, 128}));
}

double worst_difference(const Tensor& got, const Tensor& want, std::int64_t columns,
                        std::int64_t rows) {
  const std::int64_t got_columns = got.shape().back();
  double worst = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double difference = std::abs(double{got.as<float>()[i * got_columns + j]} -
                                         want.as<double>()[i * columns + j]);
      if (!(difference <= worst)) worst = difference;
    }
  }
  return worst;
}

TEST(PeerPrefill, StagesAreThoseOfTheChunkedForm) {
  const KdaInputs made = inputs(100, 17);
  const Semantics s = check(Contract::kChunkKda, made.problem());
  std::vector<PeerStages> got;
  static_cast<void>(peer_prefill(made.problem(), s, kPeerMixed,
                                 [&](const PeerStages& stages) { got.push_back(stages); }));
  std::size_t next = 0;
  static_cast<void>(chunked(made.problem(), s, [&](const Stages& want) {
    const PeerStages& peer = got.at(next++);
    ASSERT_EQ(peer.begin, want.begin);
    ASSERT_EQ(peer.hv, want.hv);
    ASSERT_EQ(peer.tokens, want.tokens);
    const std::int64_t C = want.tokens;
    EXPECT_LT(worst_difference(peer.A, want.A, C, C), 1e-3);
    EXPECT_LT(worst_difference(peer.Q, want.Q, C, C), 1e-3);
    EXPECT_LT(worst_difference(peer.T, want.T, C, C), 1e-3);
    EXPECT_LT(worst_difference(peer.S, want.state, 128, 128), 3e-3);
  }));
  EXPECT_EQ(next, got.size());
  EXPECT_EQ(next, 4U);
}

}  // namespace
}  // namespace kda::reference
