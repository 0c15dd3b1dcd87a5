#include "harness/mutate/mutant.hpp"

#include <algorithm>
#include <cmath>

// Mistakes in reading: options ignored or taken for others, parameters of another head, keys and
// queries normalised wrongly.

namespace kda::harness::mutate {
namespace {

/// The tensor `name` with every element replaced by f(value, index); nothing when it is absent.
template <class F>
void replace(Call& call, const char* name, F f) {
  const auto found = call.inputs.inputs.find(name);
  if (found == call.inputs.inputs.end()) return;
  const Tensor before = found->second;
  for (std::int64_t i = 0; i < before.size(); ++i) {
    found->second.store(i, f(before, i));
  }
}

double value(const Tensor& x, std::int64_t i) { return load(x.view(), i); }

/// q or k multiplied by factor(sum of squares of its row), as f64; and no further norm.
template <class F>
void scale_rows(Call& call, const char* name, F factor) {
  Tensor& x = call.inputs.inputs.at(name);
  const std::int64_t K = call.semantics.K;
  Tensor scaled(Dtype::kF64, x.shape());
  for (std::int64_t row = 0; row < x.size() / K; ++row) {
    double sum = 0;
    for (std::int64_t c = 0; c < K; ++c) sum += std::pow(value(x, row * K + c), 2);
    for (std::int64_t c = 0; c < K; ++c) {
      scaled.store(row * K + c, value(x, row * K + c) * factor(sum, static_cast<double>(K)));
    }
  }
  x = scaled;
}

using Factor = double (*)(double sum, double K);
double honest_factor(double sum, double /*K*/) { return 1 / std::sqrt(sum + 1e-6); }
double no_factor(double /*sum*/, double /*K*/) { return 1; }

void norm_by(Call& call, Factor q, Factor k) {
  if (call.semantics.qk_norm == QkNorm::kNone) return;
  scale_rows(call, "q", q);
  scale_rows(call, "k", k);
  call.semantics.qk_norm = QkNorm::kNone;
}

void remove(Call& call, const char* name) { call.inputs.inputs.erase(name); }

/// q and k of head map(hv, H, HV) for value head hv, in place of hv / (HV/H).
void map_heads(Call& call, std::int64_t (*map)(std::int64_t hv, std::int64_t H, std::int64_t HV)) {
  Semantics& s = call.semantics;
  for (const char* name : {"q", "k"}) {
    Tensor& x = call.inputs.inputs.at(name);
    Tensor wide(x.dtype(), {s.B, s.T, s.HV, s.K});
    for (std::int64_t row = 0; row < s.B * s.T; ++row) {
      for (std::int64_t hv = 0; hv < s.HV; ++hv) {
        const std::int64_t h = std::min(map(hv, s.H, s.HV), s.H - 1);
        for (std::int64_t c = 0; c < s.K; ++c) {
          wide.store((row * s.HV + hv) * s.K + c, value(x, (row * s.H + h) * s.K + c));
        }
      }
    }
    x = wide;
  }
  s.H = s.HV;
}

void set_beta(Call& call, BetaForm from, BetaForm to) {
  if (call.semantics.beta == from) call.semantics.beta = to;
}

void set_gate(Call& call, GateForm from, GateForm to, double lower_bound) {
  if (call.semantics.gate != from) return;
  call.semantics.gate = to;
  call.semantics.lower_bound = lower_bound;
}

double default_scale(std::int64_t extent) { return 1 / std::sqrt(static_cast<double>(extent)); }

std::vector<Mutant> beta_and_scale() {
  return {
      {.name = "beta_logit_taken",
       .what = "beta used without its sigmoid",
       .read = [](Call& c) { set_beta(c, BetaForm::kLogit, BetaForm::kReady); }},
      {.name = "beta_sigmoid_of_ready",
       .what = "sigmoid of a beta that is ready",
       .read = [](Call& c) { set_beta(c, BetaForm::kReady, BetaForm::kLogit); }},
      {.name = "beta_doubled",
       .what = "2 sigmoid(beta) where sigmoid is asked for",
       .read = [](Call& c) { set_beta(c, BetaForm::kLogit, BetaForm::kDoubledLogit); }},
      {.name = "beta_not_doubled",
       .what = "sigmoid(beta) where 2 sigmoid is asked for",
       .read = [](Call& c) { set_beta(c, BetaForm::kDoubledLogit, BetaForm::kLogit); }},
      {.name = "scale_one",
       .what = "output without scale",
       .read = [](Call& c) { c.semantics.scale = 1; }},
      {.name = "scale_twice",
       .what = "scale applied twice",
       .read = [](Call& c) { c.semantics.scale *= c.semantics.scale; }},
      {.name = "scale_of_v",
       .what = "V^-0.5 in place of K^-0.5",
       .read = [](Call& c) { c.semantics.scale = default_scale(c.semantics.V); }},
      {.name = "scale_argument_ignored",
       .what = "K^-0.5 whatever scale is passed",
       .read = [](Call& c) { c.semantics.scale = default_scale(c.semantics.K); }},
      {.name = "chunk_size_64",
       .what = "h every 64 tokens whatever chunk_size is passed",
       .read = [](Call& c) { c.semantics.chunk = 64; }},
  };
}

std::vector<Mutant> gate_options() {
  return {
      {.name = "gate_without_bias",
       .what = "dt_bias ignored",
       .read = [](Call& c) { remove(c, "dt_bias"); }},
      {.name = "gate_without_slope",
       .what = "A_log ignored",
       .read = [](Call& c) { remove(c, "A_log"); }},
      {.name = "gate_slope_not_exponentiated",
       .what = "slope A_log in place of exp(A_log)",
       .read =
           [](Call& c) {
             replace(c, "A_log", [](const Tensor& x, std::int64_t i) {
               return std::log(std::max(std::abs(value(x, i)), 1e-6));
             });
           }},
      {.name = "gate_slope_of_head_0",
       .what = "A_log of the first head for all",
       .read =
           [](Call& c) {
             replace(c, "A_log", [](const Tensor& x, std::int64_t) { return value(x, 0); });
           }},
      {.name = "gate_bias_of_next_head",
       .what = "dt_bias of the next head",
       .read =
           [](Call& c) {
             const std::int64_t K = c.semantics.K;
             replace(c, "dt_bias",
                     [K](const Tensor& x, std::int64_t i) { return value(x, (i + K) % x.size()); });
           }},
      {.name = "gate_bias_transposed",
       .what = "dt_bias read as [K,HV]",
       .read =
           [](Call& c) {
             const std::int64_t K = c.semantics.K;
             const std::int64_t HV = c.semantics.HV;
             replace(c, "dt_bias", [K, HV](const Tensor& x, std::int64_t i) {
               return value(x, i % K * HV + i / K);
             });
           }},
      {.name = "gate_bound_ignored",
       .what = "softplus gate where the bounded one is asked for",
       .read = [](Call& c) { set_gate(c, GateForm::kLowerBound, GateForm::kSoftplus, 0); }},
      {.name = "gate_always_bounded",
       .what = "bounded gate where the softplus one is asked for",
       .read = [](Call& c) { set_gate(c, GateForm::kSoftplus, GateForm::kLowerBound, -5); }},
      {.name = "gate_bound_minus_5",
       .what = "lower bound -5 whatever is passed",
       .read = [](Call& c) { set_gate(c, GateForm::kLowerBound, GateForm::kLowerBound, -5); }},
  };
}

std::vector<Mutant> norms_left_out() {
  return {
      {.name = "norm_ignored",
       .what = "q and k as they come",
       .read = [](Call& c) { c.semantics.qk_norm = QkNorm::kNone; }},
      {.name = "norm_of_q_only",
       .what = "k as it comes",
       .read = [](Call& c) { norm_by(c, honest_factor, no_factor); }},
      {.name = "norm_of_k_only",
       .what = "q as it comes",
       .read = [](Call& c) { norm_by(c, no_factor, honest_factor); }},
  };
}

std::vector<Mutant> norm_formulas() {
  return {
      {.name = "norm_by_mean",
       .what = "mean of squares in place of their sum",
       .read =
           [](Call& c) {
             const Factor f = [](double sum, double K) { return 1 / std::sqrt(sum / K + 1e-6); };
             norm_by(c, f, f);
           }},
      {.name = "norm_without_root",
       .what = "x / (sum of squares)",
       .read =
           [](Call& c) {
             const Factor f = [](double sum, double) { return 1 / (sum + 1e-6); };
             norm_by(c, f, f);
           }},
      {.name = "norm_without_eps",
       .what = "x / sqrt(sum): rows of zeros become NaN",
       .read =
           [](Call& c) {
             const Factor f = [](double sum, double) { return 1 / std::sqrt(sum); };
             norm_by(c, f, f);
           }},
      {.name = "norm_eps_outside",
       .what = "x / (sqrt(sum) + 1e-6)",
       .read =
           [](Call& c) {
             const Factor f = [](double sum, double) { return 1 / (std::sqrt(sum) + 1e-6); };
             norm_by(c, f, f);
           }},
      {.name = "norm_eps_1e-5",
       .what = "eps ten times too large",
       .read =
           [](Call& c) {
             const Factor f = [](double sum, double) { return 1 / std::sqrt(sum + 1e-5); };
             norm_by(c, f, f);
           }},
      {.name = "norm_eps_1e-12",
       .what = "eps of another library",
       .read =
           [](Call& c) {
             const Factor f = [](double sum, double) { return 1 / std::sqrt(sum + 1e-12); };
             norm_by(c, f, f);
           }},
  };
}

std::vector<Mutant> head_maps() {
  return {
      {.name = "heads_by_modulo",
       .what = "value head hv reads query/key head hv % H",
       .read =
           [](Call& c) {
             map_heads(c, [](std::int64_t hv, std::int64_t H, std::int64_t) { return hv % H; });
           }},
      {.name = "heads_by_H",
       .what = "value head hv reads query/key head hv / H",
       .read =
           [](Call& c) {
             map_heads(c, [](std::int64_t hv, std::int64_t H, std::int64_t) { return hv / H; });
           }},
      {.name = "heads_all_first",
       .what = "all value heads read query/key head 0",
       .read =
           [](Call& c) {
             map_heads(c, [](std::int64_t, std::int64_t, std::int64_t) { return std::int64_t{0}; });
           }},
  };
}

}  // namespace

std::vector<Mutant> option_mutants() { return together({beta_and_scale(), gate_options()}); }

std::vector<Mutant> norm_mutants() {
  return together({norms_left_out(), norm_formulas(), head_maps()});
}

}  // namespace kda::harness::mutate
