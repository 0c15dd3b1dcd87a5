#include "reference/activated.hpp"
#include "reference/chunked.hpp"
#include "tests/cuda/prefill_call.hpp"
#include "tests/cuda/prefill_families.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// Every intermediate tensor of the prefill kernel by itself, against f64 on the same inputs.

namespace kda::cuda {
namespace {

using tests::Gates;
using tests::KdaInputs;
using tests::Keys;
using tests::PrefillFamily;

constexpr std::int64_t kC = 64;
constexpr std::int64_t kK = 128;

PrefillTensors stages_of(const KdaInputs& inputs, PrefillPolicy policy, Outputs* out = nullptr) {
  PrefillTensors stages;
  Outputs outputs = run_prefill_cpu(inputs.problem(), {.policy = policy}, {}, nullptr, &stages);
  if (out != nullptr) *out = std::move(outputs);
  return stages;
}

Semantics semantics_of(const KdaInputs& inputs) {
  return check(Contract::kKdaPrefill, inputs.problem());
}

/// Activated rows of head hv of the first sequence, f64.
reference::ActivatedRows rows_of(const KdaInputs& inputs, std::int64_t hv) {
  const Problem problem = inputs.problem();
  const Semantics s = semantics_of(inputs);
  reference::ActivatedRows rows;
  reference::ActivatedReader(problem, s).read(s.sequences[0], hv, 0, s.sequences[0].length(), rows);
  return rows;
}

double at(const Tensor& tensor, std::int64_t index) { return double{tensor.as<float>()[index]}; }

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Gates, write strengths, norms.

/// A_log by head, y by channel; what softplus and the sigmoid make of them spans all of f32.
KdaInputs gate_inputs(GateForm form) {
  constexpr std::array<double, 4> kALog{-20, 0, 5.3, 100};
  constexpr std::array<double, 6> kY{-200, -99, -20, -1, 0, 20};
  KdaInputs inputs = prefill_inputs(9, 4, 21);
  inputs.g = Tensor(Dtype::kBf16, inputs.g.shape());
  tests::fill(inputs.g, [&](std::int64_t i) { return kY[index(i % kK % 6)]; });
  inputs.A_log = tests::f32({4}, {kALog.begin(), kALog.end()});
  inputs.dt_bias = tests::uniform(Dtype::kF32, {4, kK}, 22, -0.5, 0.5);
  inputs.options.use_gate_in_kernel = true;
  if (form == GateForm::kLowerBound) inputs.options.lower_bound = -5;
  return inputs;
}

TEST(PrefillStages, LogDecayOfBothGates) {
  for (const GateForm form : {GateForm::kSoftplus, GateForm::kLowerBound}) {
    const KdaInputs inputs = gate_inputs(form);
    const PrefillTensors stages = stages_of(inputs, PrefillPolicy::kMixed);
    for (std::int64_t hv = 0; hv < 4; ++hv) {
      const reference::ActivatedRows rows = rows_of(inputs, hv);
      for (std::int64_t i = 0; i < 9 * kK; ++i) {
        const double want = rows.log_decay[index(i)];
        const double got = at(stages.log_decay, hv * kC * kK + i);
        // Beyond any number whose exponential is not 0, its size does not matter.
        const bool close =
            want < -1e30 ? got <= -1e30 : std::abs(got - want) <= 5e-6 * std::abs(want) + 1e-37;
        EXPECT_TRUE(close) << hv << ", " << i << ": " << got << ", wanted " << want;
      }
    }
  }
}

TEST(PrefillStages, WriteStrengthIsTheDiagonalOfT) {
  for (const bool logits : {false, true}) {
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kF32}) {
      KdaInputs inputs = prefill_inputs(kC, 1, 23);
      inputs.beta = tests::uniform(dtype, {1, kC, 1}, 24, logits ? -90 : 0, logits ? 90 : 2);
      inputs.options.use_beta_sigmoid_in_kernel = logits;
      const PrefillTensors stages = stages_of(inputs, PrefillPolicy::kMixed);
      const reference::ActivatedRows rows = rows_of(inputs, 0);
      for (std::int64_t i = 0; i < kC; ++i) {
        const double want = rows.beta[index(i)];
        EXPECT_NEAR(at(stages.T, i * (kC + 1)), want, 5e-6 * want + 1e-37) << i;
      }
    }
  }
}

// A and Q.

/// Log decays that factored forms cannot take, by channel or by token.
std::map<std::string, std::function<double(std::int64_t t, std::int64_t k)>> ladders() {
  static constexpr std::array kRungs{0.0, -1e-6, -5.0, -11.0, -200.0, -1000.0, -HUGE_VAL};
  return {
      {"by channel", [](std::int64_t, std::int64_t k) { return kRungs[index(k % 7)]; }},
      {"by token", [](std::int64_t t, std::int64_t) { return kRungs[index(t * 5 % 7)]; }},
      {"mixed", [](std::int64_t t, std::int64_t k) { return kRungs[index((t * 3 + k) % 7)]; }},
      {"slow after steep", [](std::int64_t t, std::int64_t) { return t < 40 ? -2661 : -0.02; }},
      {"even channels steep",
       [](std::int64_t, std::int64_t k) { return k % 2 == 0 ? -1e5 : -0.01; }},
      {"one -inf", [](std::int64_t t, std::int64_t) { return t == 20 ? -HUGE_VAL : -0.1; }},
      {"none", [](std::int64_t, std::int64_t) { return 0.0; }},
  };
}

struct ScoreErrors {
  double leaf = 0;   ///< inside blocks of 8 tokens
  double level = 0;  ///< between them
};

void merge(double& worst, double error) {
  if (!(error <= worst)) worst = error;
}

double norm(const std::vector<double>& rows, std::int64_t row) {
  double sum = 0;
  for (std::int64_t k = 0; k < kK; ++k) {
    sum += rows[index(row * kK + k)] * rows[index(row * kK + k)];
  }
  return std::sqrt(sum);
}

/// Errors of A and Q of the first chunk over the sizes of the two rows.
ScoreErrors score_errors(const KdaInputs& inputs, PrefillPolicy policy) {
  const PrefillTensors got = stages_of(inputs, policy);
  const reference::ActivatedRows rows = rows_of(inputs, 0);
  const Problem problem = inputs.problem();
  ScoreErrors errors;
  static_cast<void>(
      reference::chunked(problem, semantics_of(inputs), [&](const reference::Stages& want) {
        if (want.begin != 0 || want.hv != 0) return;
        const std::int64_t C = want.tokens;
        for (std::int64_t i = 0; i < C; ++i) {
          for (std::int64_t j = 0; j < C; ++j) {
            const double k = norm(rows.k, j);
            const double a = std::abs(at(got.A, i * kC + j) - want.A.as<double>()[i * C + j]) /
                             (norm(rows.k, i) * k);
            const double q = std::abs(at(got.Q, i * kC + j) - want.Q.as<double>()[i * C + j]) /
                             (norm(rows.q, i) * k);
            double& worst = i / 8 == j / 8 ? errors.leaf : errors.level;
            merge(worst, a);
            merge(worst, q);
          }
        }
      }));
  return errors;
}

double level_bound(PrefillPolicy policy) {
  switch (policy) {
    case PrefillPolicy::kMixed: return 1e-3;
    case PrefillPolicy::kSplit: return 3e-5;
    case PrefillPolicy::kBf16: return 8e-3;
  }
  return 0;
}

TEST(PrefillStages, ScoresUnderEveryGate) {
  for (const PrefillPolicy policy :
       {PrefillPolicy::kMixed, PrefillPolicy::kSplit, PrefillPolicy::kBf16}) {
    for (const auto& [name, gate] : ladders()) {
      KdaInputs inputs = prefill_inputs(kC, 1, 25);
      tests::fill(inputs.g, [&, &decay = gate](std::int64_t i) { return decay(i / kK, i % kK); });
      const ScoreErrors errors = score_errors(inputs, policy);
      EXPECT_LE(errors.leaf, 2e-6) << name;
      EXPECT_LE(errors.level, level_bound(policy)) << name;
    }
  }
}

TEST(PrefillStages, ScoresOfRowsOfEverySize) {
  for (const bool l2norm : {false, true}) {
    for (const int exponent : {-20, -7, 0, 9, 20}) {
      KdaInputs inputs = prefill_inputs(50, 1, 26);
      inputs.options.use_qk_l2norm_in_kernel = l2norm;
      for (Tensor* tensor : {&inputs.q, &inputs.k}) {
        const TensorView view = tensor->view();
        for (std::int64_t i = 0; i < tensor->size(); ++i) {
          tensor->store(i, std::ldexp(load(view, i), exponent));
        }
      }
      const ScoreErrors errors = score_errors(inputs, PrefillPolicy::kMixed);
      EXPECT_LE(errors.leaf, 2e-6) << l2norm << exponent;
      EXPECT_LE(errors.level, 1e-3) << l2norm << exponent;
    }
  }
}

// Kg, Qg, Kd and what goes with them.

/// Largest relative error of elements that lie in the format's range.
double operand_error(const std::vector<double>& got, const std::vector<double>& want,
                     const std::vector<double>& scale) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(want[i]) < std::ldexp(scale[i], -26)) continue;
    merge(worst, std::abs(got[i] / want[i] - 1));
  }
  return worst;
}

struct Decays {
  std::vector<double> from_start;  ///< [64,128], exp(G_i)
  std::vector<double> to_last;     ///< [64,128], exp of the decays of tokens i+1 ... last
  std::vector<double> after_last;  ///< [128]
};

Decays decays(const reference::ActivatedRows& rows, std::int64_t last) {
  Decays d{std::vector<double>(index(kC * kK)), std::vector<double>(index(kC * kK)),
           std::vector<double>(index(kK))};
  for (std::int64_t k = 0; k < kK; ++k) {
    double sum = 0;
    for (std::int64_t t = 0; t < kC; ++t) {
      sum += rows.log_decay[index(t * kK + k)];
      d.from_start[index(t * kK + k)] = std::exp(sum);
    }
    sum = 0;
    for (std::int64_t t = kC - 1; t > last; --t) sum += rows.log_decay[index(t * kK + k)];
    d.after_last[index(k)] = std::exp(sum);
    sum = 0;
    for (std::int64_t t = last; t >= 0; --t) {
      d.to_last[index(t * kK + k)] = std::exp(sum);
      sum += rows.log_decay[index(t * kK + k)];
    }
  }
  return d;
}

void expect_operands(const KdaInputs& inputs, std::int64_t last, PrefillPolicy policy,
                     double bound) {
  PrefillCall call(inputs, {.policy = policy});
  static_cast<void>(call.run());
  const PrefillBlob blob = call.blob(0, 0);
  const reference::ActivatedRows rows = rows_of(inputs, 0);
  const Decays d = decays(rows, last);
  std::vector<double> k(index(kC * kK));
  std::vector<double> q(k.size());
  std::vector<double> w(k.size());
  std::vector<double> got_k(k.size());
  std::vector<double> got_q(k.size());
  std::vector<double> scale(k.size());
  for (std::size_t i = 0; i < k.size(); ++i) {
    const std::size_t row = i / index(kK);
    const double unit = blob.v_scale[row];  // of k~; of q~: scale / o_scale
    const double q_unit = std::pow(double{kK}, -0.5) / blob.o_scale[row];
    k[i] = rows.k[i] * unit * d.from_start[i];
    q[i] = rows.q[i] * q_unit * d.from_start[i];
    w[i] = static_cast<std::int64_t>(row) <= last ? rows.k[i] * unit * d.to_last[i] : 0.0;
    got_k[i] = blob.Kg[i] * blob.p[row];
    got_q[i] = blob.Qg[i] * blob.p[row];
    scale[i] = blob.p[row];
  }
  EXPECT_LE(operand_error(got_k, k, scale), bound);
  EXPECT_LE(operand_error(got_q, q, scale), bound);
  std::ranges::fill(scale, 1.0);
  EXPECT_LE(operand_error(blob.Kd, w, scale), bound);
  EXPECT_LE(operand_error(blob.kap, d.after_last, std::vector<double>(index(kK), 1.0)), 2e-5);
}

TEST(PrefillStages, DecayedOperands) {
  for (const Gates gates : {Gates::kNone, Gates::kSlow, Gates::kUniform, Gates::kDecades}) {
    const PrefillFamily family{.name = "", .T = kC, .gates = gates};
    KdaInputs inputs = tests::make_family(family, 1);
    expect_operands(inputs, kC - 1, PrefillPolicy::kMixed, 0x1p-11 + 2e-5);
    expect_operands(inputs, kC - 1, PrefillPolicy::kSplit, 0x1p-15);
    expect_operands(inputs, kC - 1, PrefillPolicy::kBf16, 0x1p-8 + 2e-5);
    // Nothing is written after token 19: the anchor of Kd lies there.
    for (std::int64_t t = 20; t < kC; ++t) inputs.beta.store(t, 0);
    expect_operands(inputs, 19, PrefillPolicy::kMixed, 0x1p-11 + 2e-5);
  }
}

// One chunk.

/// ||got - want|| / ||want|| of the same number of elements.
double relative_size(const float* got, const double* want, std::int64_t count) {
  double error = 0;
  double size = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    error += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

/// U = T (v - k exp(G) S) from the exact stages.
std::vector<double> exact_U(const reference::Stages& stages) {
  std::vector<double> U(stages.U.as<double>(), stages.U.as<double>() + stages.U.size());
  for (std::int64_t i = 0; i < stages.tokens; ++i) {
    for (std::int64_t k = 0; k < kK; ++k) {
      const double w = stages.W.as<double>()[i * kK + k];
      for (std::int64_t v = 0; v < kK; ++v) {
        U[index(i * kK + v)] -= w * stages.state.as<double>()[k * kK + v];
      }
    }
  }
  return U;
}

TEST(PrefillStages, UAndStateOfOneChunk) {
  for (const PrefillFamily& family : tests::prefill_families()) {
    const bool ordinary = family.keys == Keys::kRandom && family.beta <= 1 && family.beta >= -1;
    // Exact reflections (limit 8) keep what is rounded for ever: no promise but a sane number.
    const double bound = ordinary                                    ? 5e-4
                         : family.limit == 8                         ? 3e-2
                         : family.noise == 0.01 && family.beta > 1.5 ? family.state_limit
                                                                     : 3e-3;
    const KdaInputs inputs = tests::make_family(family, 1, kC);
    Outputs got;
    const PrefillTensors stages = stages_of(inputs, PrefillPolicy::kMixed, &got);
    const Outputs want = reference::chunked(
        inputs.problem(), semantics_of(inputs), [&](const reference::Stages& exact) {
          if (family.beta == 0) return;  // U is 0
          EXPECT_LE(relative_size(stages.U.as<float>(), exact_U(exact).data(), kC * kK), bound)
              << family.name;
        });
    EXPECT_LE(relative_size(got.final_state->as<float>(), want.final_state->as<double>(), kK * kK),
              bound)
        << family.name;
  }
}

/// A state whose channels differ by 2^26: the small ones are read with all of their bits.
TEST(PrefillStages, SmallChannelsBesideALargeOne) {
  KdaInputs inputs = prefill_inputs(kC, 1, 52);
  for (Tensor* tensor : {&inputs.q, &inputs.k}) {
    for (std::int64_t t = 0; t < kC; ++t) tensor->store(t * kK, 0);
  }
  const TensorView state = inputs.initial_state->view();
  for (std::int64_t v = 0; v < kK; ++v) {
    inputs.initial_state->store(v, std::ldexp(1 + std::abs(load(state, v)), 26));
  }
  Outputs got;
  const PrefillTensors stages = stages_of(inputs, PrefillPolicy::kMixed, &got);
  static_cast<void>(reference::chunked(
      inputs.problem(), semantics_of(inputs), [&](const reference::Stages& exact) {
        EXPECT_LE(relative_size(stages.U.as<float>(), exact_U(exact).data(), kC * kK), 5e-4);
      }));
}

/// The decays after the last write reach the state by themselves (kap), not through Kd.
TEST(PrefillStages, StateAfterTokensThatOnlyDecay) {
  KdaInputs inputs = prefill_inputs(kC, 1, 51);
  for (std::int64_t t = 24; t < kC; ++t) inputs.beta.store(t, 0);
  Outputs got;
  static_cast<void>(stages_of(inputs, PrefillPolicy::kMixed, &got));
  const Outputs want = reference::chunked(inputs.problem(), semantics_of(inputs));
  EXPECT_LE(relative_size(got.final_state->as<float>(), want.final_state->as<double>(), kK * kK),
            5e-4);
}

}  // namespace
}  // namespace kda::cuda
