#include "reference/chunked.hpp"

#include "reference/recurrent.hpp"
#include "tests/reference/kda_cases.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kda::reference {
namespace {

using namespace kda::tests;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

constexpr double kInf = std::numeric_limits<double>::infinity();

double disagreement(const KdaInputs& inputs) {
  const Semantics semantics = inputs.semantics();
  return relative_error(chunked(inputs.problem(), semantics),
                        recurrent(inputs.problem(), semantics), semantics);
}

TEST(Chunked, AgreesWithTheRecurrence) {
  for (const auto& cases : {option_cases(), hard_cases()}) {
    for (const auto& [name, inputs] : cases) EXPECT_LE(disagreement(inputs), 1e-11) << name;
  }
}

TEST(Chunked, AgreesAtEveryChunkLength) {
  for (const std::int64_t chunk : {1, 2, 7, 31, 32, 33, 63, 64, 65, 100, 128, 1000}) {
    KdaInputs inputs = random_inputs({.T = 131, .H = 1, .HV = 2}, 21);
    inputs.initial_state = random_state(inputs.semantics(), 22);
    inputs.options.chunk_size = chunk;
    EXPECT_LE(disagreement(inputs), 1e-13) << chunk;
  }
}

TEST(Chunked, AgreesOnSizesAroundVectors) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 60, 100, 129}) {
    const KdaInputs inputs = random_inputs({.T = 66, .K = size, .V = size % 23 + 1}, 23);
    EXPECT_LE(disagreement(inputs), 1e-13) << size;
  }
}

TEST(Chunked, RowsOfNoSequenceAreNeverRead) {
  KdaInputs inputs = random_inputs({.T = 100}, 24);
  inputs.cu_seqlens = bounds({0, 40, 75});
  const Semantics semantics = inputs.semantics();
  const Outputs want = chunked(inputs.problem(), semantics);
  for (Tensor* x : {&inputs.q, &inputs.k, &inputs.v, &inputs.g, &inputs.beta}) {
    for (std::int64_t i = x->size() / 100 * 75; i < x->size(); ++i) x->store(i, std::nan(""));
  }
  EXPECT_TRUE(same_bits(chunked(inputs.problem(), semantics), want));
}

double at(const Tensor& x, std::int64_t row, std::int64_t column) {
  return x.as<double>()[row * x.shape()[1] + column];
}

/// The stages of one sequence of one head, in order.
std::vector<Stages> stages_of(const KdaInputs& inputs) {
  std::vector<Stages> all;
  const auto keep = [&](const Stages& stages) { all.push_back(stages); };
  static_cast<void>(chunked(inputs.problem(), inputs.semantics(), keep));
  return all;
}

struct Scores {
  double A;
  double Q;
};

/// A_ij and Q_ij of tokens first + i, first + j by the definition, in long double. H = HV = 1.
Scores scores_by_definition(const KdaInputs& x, std::int64_t first, std::int64_t i,
                            std::int64_t j) {
  const std::int64_t K = x.q.shape()[3];
  long double A = 0;
  long double Q = 0;
  for (std::int64_t c = 0; c < K; ++c) {
    long double sum = 0;
    for (std::int64_t s = j + 1; s <= i; ++s) sum += load(x.g.view(), (first + s) * K + c);
    const long double kj = load(x.k.view(), (first + j) * K + c) * std::exp(sum);
    A += load(x.k.view(), (first + i) * K + c) * kj;
    Q += load(x.q.view(), (first + i) * K + c) * kj;
  }
  return {static_cast<double>(A), static_cast<double>(Q)};
}

TEST(ChunkedStages, ScoresFollowTheirDefinition) {
  KdaInputs inputs = random_inputs({.T = 40, .K = 5, .V = 3}, 25);
  inputs.options.chunk_size = 32;
  fill(inputs.g, [](std::int64_t i) { return i % 47 == 0 ? -1000.0 : i % 91 == 0 ? -kInf : -0.2; });
  for (const Stages& stages : stages_of(inputs)) {
    for (std::int64_t i = 0; i < stages.tokens; ++i) {
      for (std::int64_t j = 0; j < stages.tokens; ++j) {
        const Scores want = scores_by_definition(inputs, stages.begin, i, j);
        EXPECT_NEAR(at(stages.A, i, j), i > j ? want.A : 0, 1e-14);
        EXPECT_NEAR(at(stages.Q, i, j), i >= j ? want.Q : 0, 1e-14);
      }
    }
  }
}

TEST(ChunkedStages, CumsumIsLocalToTheChunk) {
  KdaInputs inputs = random_inputs({.T = 70, .K = 3, .V = 3}, 26);
  for (const Stages& stages : stages_of(inputs)) {
    for (std::int64_t c = 0; c < 3; ++c) {
      double sum = 0;
      for (std::int64_t i = 0; i < stages.tokens; ++i) {
        sum += load(inputs.g.view(), (stages.begin + i) * 3 + c);
        EXPECT_EQ(at(stages.gate_cumsum, i, c), sum);
      }
    }
  }
}

TEST(ChunkedStages, InverseUndoesTheSystem) {
  const KdaInputs inputs = random_inputs({.T = 64, .K = 6, .V = 5}, 27);
  const Stages stages = stages_of(inputs).at(0);
  // (I + diag(beta) A) T = diag(beta)
  for (std::int64_t i = 0; i < 64; ++i) {
    const double beta = load(inputs.beta.view(), i);
    for (std::int64_t j = 0; j < 64; ++j) {
      double sum = at(stages.T, i, j);
      for (std::int64_t m = 0; m < i; ++m) sum += beta * at(stages.A, i, m) * at(stages.T, m, j);
      EXPECT_NEAR(sum, i == j ? beta : 0, 1e-14);
    }
  }
}

TEST(ChunkedStages, WAndUAreTheInverseTimesKeysAndValues) {
  const KdaInputs inputs = random_inputs({.T = 33, .K = 6, .V = 5}, 28);
  const Stages stages = stages_of(inputs).at(0);
  for (std::int64_t i = 0; i < 33; ++i) {
    for (std::int64_t c = 0; c < 6; ++c) {
      double W = 0;
      for (std::int64_t j = 0; j < 33; ++j) {
        W += at(stages.T, i, j) * load(inputs.k.view(), j * 6 + c) *
             std::exp(at(stages.gate_cumsum, j, c));
      }
      EXPECT_NEAR(at(stages.W, i, c), W, 1e-14);
    }
    for (std::int64_t c = 0; c < 5; ++c) {
      double U = 0;
      for (std::int64_t j = 0; j < 33; ++j)
        U += at(stages.T, i, j) * load(inputs.v.view(), j * 5 + c);
      EXPECT_NEAR(at(stages.U, i, c), U, 1e-14);
    }
  }
}

TEST(ChunkedStages, StateIsTheChunkStateInKeyFirstLayout) {
  KdaInputs inputs = random_inputs({.T = 70, .K = 6, .V = 5}, 29);
  inputs.options.state_v_first = true;
  const Outputs want = recurrent(inputs.problem(), inputs.semantics());
  const std::vector<Stages> all = stages_of(inputs);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].tokens, 64);
  EXPECT_EQ(all[1].begin, 64);
  EXPECT_EQ(all[1].tokens, 6);
  for (std::int64_t k = 0; k < 6; ++k) {
    for (std::int64_t v = 0; v < 5; ++v) {
      EXPECT_NEAR(at(all[1].state, k, v), load(want.h->view(), (5 + v) * 6 + k), 1e-13);
    }
  }
}

TEST(ChunkedStages, StayFiniteUnderTheStrongestGates) {
  KdaInputs inputs = random_inputs({.T = 64}, 30);
  fill(inputs.g, [](std::int64_t i) { return i % 3 == 0 ? -kInf : -1000; });
  const Stages stages = stages_of(inputs).at(0);
  for (const Tensor* x : {&stages.A, &stages.Q, &stages.T, &stages.W, &stages.U, &stages.state}) {
    const std::vector<double> values = to_f64(x->view());
    EXPECT_TRUE(std::ranges::all_of(values, [](double y) { return std::isfinite(y); }));
  }
}

}  // namespace
}  // namespace kda::reference
