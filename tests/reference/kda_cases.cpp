#include "tests/reference/kda_cases.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace kda::tests {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void add_gate(KdaInputs& inputs, bool with_a_log, bool with_bias, std::optional<double> bound) {
  const std::int64_t HV = inputs.v.shape()[2];
  const std::int64_t K = inputs.q.shape()[3];
  inputs.options.use_gate_in_kernel = true;
  inputs.options.lower_bound = bound;
  fill_uniform(inputs.g, 71, -6, 3);
  if (with_a_log) inputs.A_log = uniform(Dtype::kF32, {HV}, 72, -1, 2);
  if (with_bias) inputs.dt_bias = uniform(Dtype::kF32, {HV, K}, 73, -2, 2);
}

KdaInputs gated(bool with_a_log, bool with_bias, std::optional<double> bound) {
  KdaInputs inputs = random_inputs({.T = 9, .H = 2, .HV = 4, .K = 5, .V = 3}, 31);
  add_gate(inputs, with_a_log, with_bias, bound);
  return inputs;
}

KdaInputs logit_beta(bool doubled) {
  KdaInputs inputs = random_inputs({.T = 9, .H = 2, .HV = 2}, 32);
  inputs.options.use_beta_sigmoid_in_kernel = true;
  inputs.options.allow_neg_eigval = doubled;
  fill_uniform(inputs.beta, 33, -4, 4);
  return inputs;
}

KdaInputs with_state(bool v_first) {
  KdaInputs inputs = random_inputs({.B = 2, .T = 7, .H = 2, .HV = 4, .K = 6, .V = 3}, 34);
  inputs.options.state_v_first = v_first;
  inputs.options.chunk_size = 3;
  inputs.initial_state = random_state(inputs.semantics(), 35);
  return inputs;
}

KdaInputs varlen(const std::vector<std::int64_t>& cu_seqlens, std::int64_t T) {
  KdaInputs inputs = random_inputs({.T = T, .H = 1, .HV = 2, .K = 5, .V = 4}, 36);
  inputs.cu_seqlens = bounds(cu_seqlens);
  inputs.options.chunk_size = 32;
  inputs.initial_state = random_state(inputs.semantics(), 37);
  return inputs;
}

KdaInputs normalised() {
  KdaInputs inputs = random_inputs({.T = 6, .H = 2, .HV = 2}, 38);
  fill_uniform(inputs.q, 39, -20, 20);
  fill_uniform(inputs.k, 40, -1e-3, 1e-3);  // 1e-6 under the root weighs here
  inputs.options.use_qk_l2norm_in_kernel = true;
  return inputs;
}

KdaInputs everything() {
  KdaInputs inputs = random_inputs({.T = 70, .H = 2, .HV = 6, .K = 7, .V = 9}, 41, Dtype::kBf16);
  add_gate(inputs, true, true, -5.0);
  fill_uniform(inputs.beta, 42, -3, 3);
  inputs.cu_seqlens = bounds({0, 0, 33, 34, 66});
  inputs.options.use_qk_l2norm_in_kernel = true;
  inputs.options.use_beta_sigmoid_in_kernel = true;
  inputs.options.allow_neg_eigval = true;
  inputs.options.state_v_first = true;
  inputs.options.chunk_size = 16;
  inputs.options.scale = 0.7;
  inputs.initial_state = random_state(inputs.semantics(), 43);
  return inputs;
}

KdaInputs hard(std::int64_t T, const std::function<double(std::int64_t)>& g_of_index) {
  KdaInputs inputs = random_inputs({.T = T, .H = 1, .HV = 2, .K = 8, .V = 8}, 51);
  inputs.initial_state = random_state(inputs.semantics(), 52);
  fill(inputs.g, g_of_index);
  return inputs;
}

/// Keys that differ by `noise`, all written with strength `beta`.
KdaInputs collinear(double noise, double beta, bool alternate_sign) {
  KdaInputs inputs = random_inputs({.T = 130, .H = 1, .HV = 1, .K = 16, .V = 16}, 53);
  fill_uniform(inputs.k, 54, -noise, noise);
  for (std::int64_t t = 0; t < 130; ++t) {
    inputs.k.store(t * 16, alternate_sign && t % 2 == 1 ? -1.0 : 1.0);
  }
  fill(inputs.beta, [=](std::int64_t) { return beta; });
  fill(inputs.g, [](std::int64_t) { return -3.07e-5; });
  return inputs;
}

}  // namespace

std::vector<NamedCase> option_cases() {
  std::vector<NamedCase> cases;
  const auto add = [&](std::string name, KdaInputs inputs) {
    cases.push_back({std::move(name), std::move(inputs)});
  };
  add("plain", random_inputs({.B = 2, .T = 5, .H = 2, .HV = 2}, 11));
  add("one_token", random_inputs({.K = 1, .V = 1}, 12));
  add("grouped_heads", random_inputs({.T = 5, .H = 2, .HV = 6, .K = 3, .V = 11}, 13));
  add("bf16", random_inputs({.T = 5}, 14, Dtype::kBf16));
  add("f16", random_inputs({.T = 5}, 15, Dtype::kF16));
  add("softplus_gate", gated(true, true, {}));
  add("softplus_gate_without_bias", gated(true, false, {}));
  add("bounded_gate", gated(true, true, -5.0));
  add("bounded_gate_without_slope", gated(false, false, -1.5));
  add("logit_beta", logit_beta(false));
  add("doubled_logit_beta", logit_beta(true));
  add("l2_norm", normalised());
  add("state_kv", with_state(false));
  add("state_vk", with_state(true));
  add("varlen", varlen({0, 3, 36, 68}, 68));
  add("varlen_empty_sequences", varlen({0, 0, 5, 5, 5, 9, 9}, 9));
  add("varlen_rows_left_over", varlen({0, 4, 9}, 14));
  add("varlen_nothing", varlen({0, 0}, 0));
  add("everything", everything());
  return cases;
}

std::vector<NamedCase> hard_cases() {
  std::vector<NamedCase> cases;
  const auto add = [&](std::string name, KdaInputs inputs) {
    cases.push_back({std::move(name), std::move(inputs)});
  };
  for (const double g : {0.0, -1e-4, -0.5, -1.4, -2.8, -5.0, -5.6, -12.0, -200.0, -1000.0, -kInf}) {
    add("gate_" + std::to_string(g), hard(129, [g](std::int64_t) { return g; }));
  }
  add("gate_one_fast_channel", hard(64, [](std::int64_t i) { return i % 8 == 0 ? -5.0 : -0.001; }));
  add("gate_channels_far_apart",
      hard(129, [](std::int64_t i) { return -std::pow(10.0, static_cast<double>(i % 8) - 5); }));
  add("gate_resets", hard(129, [](std::int64_t i) { return i / 16 % 20 == 7 ? -1000.0 : -0.1; }));
  add("gate_hard_resets", hard(129, [](std::int64_t i) { return i % 37 == 5 ? -kInf : -0.1; }));
  for (const std::int64_t T : {1, 15, 16, 17, 63, 64, 65, 127, 128, 129}) {
    add("tail_" + std::to_string(T),
        hard(T, [](std::int64_t i) { return -0.01 * static_cast<double>(i % 50); }));
  }
  add("identical_keys", collinear(0, 0.9, false));
  add("identical_keys_reflected", collinear(0, 2.0, false));
  add("near_collinear", collinear(0.01, 1.0, false));
  add("near_collinear_reflected", collinear(0.01, 1.98, false));
  add("alternating_sign", collinear(0.01, 1.5, true));
  return cases;
}

}  // namespace kda::tests
