#include "harness/case/named_outputs.hpp"
#include "harness/compare/compare_blocks.hpp"
#include "harness/run/diagnosis.hpp"
#include "reference/fast.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace kda::harness {
namespace {

constexpr double kMostLeft = 0.1;
using Inputs = std::map<std::string, Tensor>;

/// A fault in what is computed, as a change of the case: the reference's answer to the changed case
/// is what a kernel with the fault would return. `applies` changes it, or says no.
struct Variant {
  const char* fault;
  std::function<bool(KdaCase&, const Semantics&)> apply;
};

void fill(Tensor& tensor, double value) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, value);
}

void multiply(Tensor& tensor, double factor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, factor * load(tensor.view(), i));
}

bool refill(KdaCase& changed, const char* input, double value) {
  const auto found = changed.inputs.find(input);
  if (found == changed.inputs.end()) return false;
  fill(found->second, value);
  return true;
}

bool flip(bool& flag) {
  flag = !flag;
  return true;
}

/// State matrices read in the other layout.
bool transpose_states(KdaCase& changed, const Semantics& s) {
  const auto found = changed.inputs.find("initial_state");
  if (found == changed.inputs.end() || s.K != s.V) return false;
  const Tensor old = found->second;
  const std::int64_t size = s.K;
  for (std::int64_t i = 0; i < old.size(); ++i) {
    const std::int64_t at = i % (size * size);
    found->second.store(i, load(old.view(), i - at + at % size * size + at / size));
  }
  return true;
}

/// States of the sequence before, the first from the last.
bool rotate_states(KdaCase& changed, const Semantics& s) {
  const auto found = changed.inputs.find("initial_state");
  if (found == changed.inputs.end() || s.N() < 2) return false;
  const Tensor old = found->second;
  const std::int64_t slot = old.size() / s.N();
  for (std::int64_t i = 0; i < old.size(); ++i)
    found->second.store(i, load(old.view(), (i + old.size() - slot) % old.size()));
  return true;
}

/// Sequence bounds of a flattened batch.
Tensor bounds_tensor(const std::vector<std::int64_t>& bounds) {
  Tensor tensor(Dtype::kI64, {static_cast<std::int64_t>(bounds.size())});
  for (std::size_t i = 0; i < bounds.size(); ++i) tensor.as<std::int64_t>()[i] = bounds[i];
  return tensor;
}

/// The first states, zeros where there are more slots than before.
void resize_states(KdaCase& changed, const std::vector<std::int64_t>& slots) {
  const auto found = changed.inputs.find("initial_state");
  if (found == changed.inputs.end()) return;
  const Tensor& old = found->second;
  Shape shape = old.shape();
  const std::int64_t size = old.size() / shape[0];
  shape[0] = static_cast<std::int64_t>(slots.size());
  Tensor states(old.dtype(), shape);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (std::int64_t e = 0; slots[i] >= 0 && e < size; ++e)
      states.store(static_cast<std::int64_t>(i) * size + e, load(old.view(), slots[i] * size + e));
  }
  found->second = std::move(states);
}

/// All sequences of a flattened batch as one.
bool join_sequences(KdaCase& changed, const Semantics& s) {
  if (s.B != 1 || s.N() < 2) return false;
  changed.inputs.insert_or_assign("cu_seqlens", bounds_tensor({0, s.sequences.back().end}));
  resize_states(changed, {0});
  return true;
}

/// Every chunk as a sequence of its own; slot -1 is a state of zeros.
bool cut_at_chunks(KdaCase& changed, const Semantics& s) {
  if (s.B != 1 || s.num_chunks == s.N()) return false;
  std::vector<std::int64_t> bounds{0};
  std::vector<std::int64_t> slots;
  for (std::int64_t n = 0; n < s.N(); ++n) {
    const Sequence& sequence = s.sequences[static_cast<std::size_t>(n)];
    for (std::int64_t t = sequence.begin; t < sequence.end; t += s.chunk) {
      slots.push_back(t == sequence.begin ? n : -1);
      bounds.push_back(std::min(t + s.chunk, sequence.end));
    }
  }
  changed.inputs.insert_or_assign("cu_seqlens", bounds_tensor(bounds));
  resize_states(changed, slots);
  return true;
}

/// Value head hv reads query head hv % H instead of hv / (HV / H).
bool interleave_heads(KdaCase& changed, const Semantics& s) {
  if (s.H == 1 || s.H == s.HV) return false;
  for (const char* input : {"q", "k"}) {
    const Tensor old = changed.inputs.at(input);
    Tensor wide(old.dtype(), {s.B, s.T, s.HV, s.K});
    for (std::int64_t i = 0; i < wide.size(); ++i) {
      const std::int64_t head = i / s.K % s.HV % s.H;
      wide.store(i, load(old.view(), (i / (s.K * s.HV) * s.H + head) * s.K + i % s.K));
    }
    changed.inputs.at(input) = std::move(wide);
  }
  return true;
}

using C = KdaCase;
using S = Semantics;

std::vector<Variant> faults_of_options() {
  return {
      {"use_qk_l2norm_in_kernel is ignored",
       [](C& c, const S& s) {
         return s.qk_norm == QkNorm::kL2 && flip(c.options.use_qk_l2norm_in_kernel);
       }},
      {"q and k are normalised though that was not asked for",
       [](C& c, const S& s) {
         return s.qk_norm == QkNorm::kNone && flip(c.options.use_qk_l2norm_in_kernel);
       }},
      {"the sigmoid of beta is missing",
       [](C& c, const S& s) {
         c.options.allow_neg_eigval = false;
         return s.beta != BetaForm::kReady && flip(c.options.use_beta_sigmoid_in_kernel);
       }},
      {"beta goes through a sigmoid though it is ready-made",
       [](C& c, const S& s) {
         c.options.allow_neg_eigval = false;
         return s.beta == BetaForm::kReady && flip(c.options.use_beta_sigmoid_in_kernel);
       }},
      {"the factor 2 of allow_neg_eigval is missing",
       [](C& c, const S& s) {
         return s.beta == BetaForm::kDoubledLogit && flip(c.options.allow_neg_eigval);
       }},
      {"sigmoid(beta) is doubled though that was not asked for",
       [](C& c, const S& s) {
         return s.beta == BetaForm::kLogit && flip(c.options.allow_neg_eigval);
       }},
      {"beta is ignored",
       [](C& c, const S& s) {
         c.options.allow_neg_eigval = c.options.use_beta_sigmoid_in_kernel = false;
         (void)s;
         return refill(c, "beta", 1);
       }},
  };
}

std::vector<Variant> faults_of_the_gate() {
  return {
      {"dt_bias is ignored",
       [](C& c, const S& s) { return s.gate != GateForm::kLogDecay && refill(c, "dt_bias", 0); }},
      {"A_log is ignored",
       [](C& c, const S& s) { return s.gate != GateForm::kLogDecay && refill(c, "A_log", 0); }},
      {"the gate has its softplus form though there is a lower_bound",
       [](C& c, const S& s) {
         c.options.lower_bound.reset();
         c.options.safe_gate = false;
         return s.gate == GateForm::kLowerBound;
       }},
      {"the raw gate is taken for the log decay",
       [](C& c, const S& s) {
         return s.gate != GateForm::kLogDecay && flip(c.options.use_gate_in_kernel);
       }},
      {"nothing decays",
       [](C& c, const S& s) {
         if (s.gate != GateForm::kLogDecay) c.options.use_gate_in_kernel = false;
         return refill(c, "g", 0);
       }},
      {"decays are taken to base 2",
       [](C& c, const S& s) {
         if (s.gate == GateForm::kLogDecay) multiply(c.inputs.at("g"), std::numbers::ln2);
         return s.gate == GateForm::kLogDecay;
       }},
      {"the log decay is scaled by 1 / ln 2 though exp is natural",
       [](C& c, const S& s) {
         if (s.gate == GateForm::kLogDecay) multiply(c.inputs.at("g"), std::numbers::log2e);
         return s.gate == GateForm::kLogDecay;
       }},
  };
}

std::vector<Variant> faults_of_states_and_heads() {
  return {
      {"the initial state is ignored",
       [](C& c, const S&) { return c.inputs.erase("initial_state") > 0; }},
      {"the initial state is read transposed", transpose_states},
      {"each sequence starts from the state of another one: a stale or misplaced state",
       rotate_states},
      {"sequences leak: the state is not reset between them", join_sequences},
      {"the state is not handed on from chunk to chunk", cut_at_chunks},
      {"value heads read the wrong query/key heads (hv % H in place of hv / (HV / H))",
       interleave_heads},
  };
}

/// RMS distance of the result from `other`, over what has the same shape in both.
double distance(const FailedResult& failed, const std::map<std::string, Tensor>& other) {
  double sum = 0;
  for (const OutputKind kind : wanted_outputs(failed.semantics)) {
    const Tensor* got = comparable(kind, failed);
    const auto found = other.find(std::string(name(kind)));
    if (got == nullptr || found == other.end() || found->second.shape() != got->shape()) continue;
    for (const Block& block : blocks_of(kind, failed.semantics, {found->second, *got})) {
      const std::vector<double> a = to_f64(block.expected);
      const std::vector<double> b = to_f64(block.got);
      for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i] != b[i]) sum += (b[i] - a[i]) * (b[i] - a[i]);
    }
  }
  return std::sqrt(sum);
}

/// The reference's answer, with those tensors only that the original case has in the same shape.
std::map<std::string, Tensor> answer(const KdaCase& changed) {
  const Problem problem = changed.problem();
  return by_name(reference::fast(problem, check(Contract::kRecurrentKda, problem),
                                 {.threads = 1, .instructions = {}}));
}

/// Adds the fault if the changed case explains the result.
void suspect(const Variant& variant, const FailedResult& failed, std::vector<Suspect>& suspects) {
  KdaCase changed = failed.kda_case;
  if (!variant.apply(changed, failed.semantics)) return;
  changed.options.return_intermediate_states = false;
  try {
    std::map<std::string, Tensor> other = answer(changed);
    std::map<std::string, Tensor> right;  // the same tensors, so that distances compare
    for (const auto& [tensor, values] : other) {
      const auto found = failed.standard.expected.find(tensor);
      if (found != failed.standard.expected.end() && found->second.shape() == values.shape())
        right.emplace(tensor, found->second);
    }
    const double left = distance(failed, other) / distance(failed, right);
    if (left <= kMostLeft) suspects.push_back({variant.fault, left});
  } catch (const Error&) {
    // A change that the contract refuses is no explanation.
  }
}

}  // namespace

void suspect_variants(const FailedResult& failed, std::vector<Suspect>& suspects) {
  const Semantics& s = failed.semantics;
  if (s.B * s.T * s.HV * s.K * s.V > FailedResult::kMostWork ||
      comparable(OutputKind::kO, failed) == nullptr)
    return;
  for (const auto& variants :
       {faults_of_options(), faults_of_the_gate(), faults_of_states_and_heads()}) {
    for (const Variant& variant : variants) suspect(variant, failed, suspects);
  }
}

}  // namespace kda::harness
