#include "reference/types/contract.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

namespace kda {
namespace {

using enum ErrorCode;
using Broken = std::optional<std::string>;

constexpr std::int64_t kPrefillHeadDim = 128;
constexpr std::int64_t kMaxHeadDim = 256;

// What the rules measure. B, T, H, HV, K, V are only meaningful once the rule on ranks holds.

std::int64_t B_of(const Problem& p) { return p.q.shape[0]; }
std::int64_t T_of(const Problem& p) { return p.q.shape[1]; }
std::int64_t H_of(const Problem& p) { return p.q.shape[2]; }
std::int64_t K_of(const Problem& p) { return p.q.shape[3]; }
std::int64_t HV_of(const Problem& p) { return p.v.shape[2]; }
std::int64_t V_of(const Problem& p) { return p.v.shape[3]; }

std::int64_t N_of(const Problem& p) { return p.cu_seqlens ? p.cu_seqlens->shape[0] - 1 : B_of(p); }

/// Bound i of cu_seqlens, whatever its integer type and stride.
std::int64_t bound(const Problem& p, std::int64_t i) {
  return load_int(*p.cu_seqlens, i * p.cu_seqlens->strides[0]);
}

std::string shapes(std::initializer_list<std::pair<const char*, const TensorView*>> tensors) {
  std::string text;
  for (const auto& [tensor_name, view] : tensors) {
    text += std::string(text.empty() ? "" : " ") + tensor_name + "=" + to_string(view->shape);
  }
  return text;
}

std::string field_got(const char* field, const std::string& wanted, const std::string& got) {
  return std::string(field) + ": expected " + wanted + ", got " + got;
}

std::string typed_shape(const TensorView& view) {
  return std::string(name(view.dtype)) + " " + to_string(view.shape);
}

bool one_of(Dtype dtype, std::initializer_list<Dtype> accepted) {
  return std::ranges::find(accepted, dtype) != accepted.end();
}

std::string number(double x) {
  return std::isfinite(x) ? std::to_string(x) : std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

/// `view` is used, but is not f32 with `count` elements.
Broken not_f32_of_size(const char* field, const Problem& p, const std::optional<TensorView>& view,
                       std::int64_t count) {
  if (!p.use_gate_in_kernel || !view) return {};
  if (view->dtype == Dtype::kF32 && view->size() == count) return {};
  return field_got(field, "f32 with " + std::to_string(count) + " elements", typed_shape(*view));
}

// Rules that all contracts share.

Broken varlen_needs_batch_one(const Problem& p) {
  if (!p.cu_seqlens || B_of(p) == 1) return {};
  return "cu_seqlens requires B == 1 (flattened varlen batch)";
}

Broken beta_shape(const Problem& p) {
  const Shape wanted{B_of(p), T_of(p), HV_of(p)};
  if (p.beta.shape == wanted) return {};
  return field_got("beta", "[B,T,HV] = " + to_string(wanted), to_string(p.beta.shape));
}

Broken a_log_invalid(const Problem& p) { return not_f32_of_size("A_log", p, p.A_log, HV_of(p)); }

Broken dt_bias_invalid(const Problem& p) {
  return not_f32_of_size("dt_bias", p, p.dt_bias, num_elements({HV_of(p), K_of(p)}));
}

Broken cu_seqlens_shape(const Problem& p) {
  if (!p.cu_seqlens) return {};
  const TensorView& cu = *p.cu_seqlens;
  if (cu.rank() == 1 && !is_float(cu.dtype) && cu.shape[0] >= 2) return {};
  return field_got("cu_seqlens", "1-D i32 or i64 with at least 2 entries", typed_shape(cu));
}

Broken lower_bound_invalid(const Problem& p) {
  if (!p.lower_bound || (std::isfinite(*p.lower_bound) && *p.lower_bound < 0)) return {};
  return field_got("lower_bound", "a finite negative number", number(*p.lower_bound));
}

Broken scale_invalid(const Problem& p) {
  if (!p.scale || std::isfinite(*p.scale)) return {};
  return field_got("scale", "a finite number", number(*p.scale));
}

/// First index i with bound(i+1) below bound(i), or equal to it where empty sequences are refused.
Broken bad_step(const Problem& p, bool empty_allowed) {
  if (!p.cu_seqlens) return {};
  for (std::int64_t i = 0; i < N_of(p); ++i) {
    const std::int64_t begin = bound(p, i);
    const std::int64_t end = bound(p, i + 1);
    if (end > begin || (end == begin && empty_allowed)) continue;
    return field_got("cu_seqlens",
                     empty_allowed ? "bounds that never decrease" : "increasing bounds",
                     std::to_string(begin) + " then " + std::to_string(end) + " at index " +
                         std::to_string(i + 1));
  }
  return {};
}

Broken state_not_f32(const Problem& p) {
  if (!p.initial_state) return {};
  const Shape wanted = p.state_v_first ? Shape{N_of(p), HV_of(p), V_of(p), K_of(p)}
                                       : Shape{N_of(p), HV_of(p), K_of(p), V_of(p)};
  if (p.initial_state->dtype == Dtype::kF32 && p.initial_state->shape == wanted) return {};
  return field_got("initial_state", "f32 " + to_string(wanted), typed_shape(*p.initial_state));
}

// kda_prefill.

Broken prefill_chunk_size(const Problem& p) {
  if (p.chunk_size == 64) return {};
  return "kda_prefill supports chunk_size=64 only, got " + std::to_string(p.chunk_size);
}

Broken training_only_option(const Problem& p) {
  if (!p.cp_context && !p.disable_recompute) return {};
  return "kda_prefill is the inference forward path: cp_context, and disable_recompute are "
         "training-side knobs it does not implement";
}

Broken neg_eigval_with_fused_beta(const Problem& p) {
  if (!p.allow_neg_eigval || !p.use_beta_sigmoid_in_kernel) return {};
  return "allow_neg_eigval=True requires 2*sigmoid(beta), which is not implemented by the fused "
         "beta path; pass pre-activated beta with use_beta_sigmoid_in_kernel=False";
}

Broken prefill_head_dim(const Problem& p) {
  const auto good = [](const TensorView& view) {
    return view.rank() == 4 && view.shape[3] == kPrefillHeadDim;
  };
  if (good(p.q) && good(p.k) && good(p.v)) return {};
  // The seed's message names q and v; k is named only when it alone is at fault.
  if (good(p.q) && good(p.v)) {
    return "expected [B,T,H,128] q/k/v, got " + shapes({{"q", &p.q}, {"k", &p.k}, {"v", &p.v}});
  }
  return "expected [B,T,H,128] q/k/v, got " + shapes({{"q", &p.q}, {"v", &p.v}});
}

Broken prefill_gate_params(const Problem& p) {
  if (!p.use_gate_in_kernel || (p.A_log && p.dt_bias)) return {};
  return field_got("A_log, dt_bias", "both with use_gate_in_kernel",
                   std::string(p.A_log     ? "A_log only"
                               : p.dt_bias ? "dt_bias only"
                                           : "neither"));
}

Broken raw_gate_dtype(const Problem& p) {
  if (!p.use_gate_in_kernel || p.g.dtype == Dtype::kBf16) return {};
  return field_got("g", "bf16 with use_gate_in_kernel", name(p.g.dtype));
}

Broken prefill_empty(const Problem& p) {
  if (B_of(p) > 0 && T_of(p) > 0 && H_of(p) > 0) return {};
  return field_got("q", "B, T, H > 0", to_string(p.q.shape));
}

Broken prefill_shapes(const Problem& p) {
  if (p.k.shape == p.q.shape && p.v.shape == p.q.shape && p.g.shape == p.q.shape) return {};
  return "q, k, v, g: expected one shape [B,T,H,128], got " +
         shapes({{"q", &p.q}, {"k", &p.k}, {"v", &p.v}, {"g", &p.g}});
}

std::string dtypes_got(const Problem& p) {
  return std::string("q=") + name(p.q.dtype) + " k=" + name(p.k.dtype) + " v=" + name(p.v.dtype) +
         " g=" + name(p.g.dtype);
}

Broken prefill_dtypes(const Problem& p) {
  const bool bf16 = one_of(p.q.dtype, {Dtype::kBf16}) && one_of(p.k.dtype, {Dtype::kBf16}) &&
                    one_of(p.v.dtype, {Dtype::kBf16});
  if (bf16 && one_of(p.g.dtype, {Dtype::kBf16, Dtype::kF32})) return {};
  return field_got("q, k, v, g", "bf16 q, k, v and bf16 or f32 g", dtypes_got(p));
}

Broken prefill_beta_dtype(const Problem& p) {
  if (one_of(p.beta.dtype, {Dtype::kBf16, Dtype::kF32})) return {};
  return field_got("beta", "bf16 or f32", name(p.beta.dtype));
}

Broken prefill_span(const Problem& p) {
  if (!p.cu_seqlens || (bound(p, 0) == 0 && bound(p, N_of(p)) == T_of(p))) return {};
  return field_got("cu_seqlens", "bounds from 0 to T = " + std::to_string(T_of(p)),
                   std::to_string(bound(p, 0)) + " to " + std::to_string(bound(p, N_of(p))));
}

Broken prefill_not_increasing(const Problem& p) { return bad_step(p, false); }

// chunk_kda and recurrent_kda.

Broken chunk_chunk_size(const Problem& p) {
  if (p.chunk_size == 32 || p.chunk_size == 64) return {};
  return field_got("chunk_size", "32 or 64", std::to_string(p.chunk_size));
}

Broken recurrent_chunk_size(const Problem& p) {
  if (!p.return_intermediate_states || p.chunk_size >= 1) return {};
  return field_got("chunk_size", "at least 1 with return_intermediate_states",
                   std::to_string(p.chunk_size));
}

Broken neg_eigval_without_fused_beta(const Problem& p) {
  if (!p.allow_neg_eigval || p.use_beta_sigmoid_in_kernel) return {};
  return field_got("allow_neg_eigval", "use_beta_sigmoid_in_kernel beside it",
                   "use_beta_sigmoid_in_kernel=0");
}

Broken head_dim_range(const Problem& p) {
  const auto good = [](const TensorView& view) {
    return view.rank() == 4 && view.shape[3] >= 1 && view.shape[3] <= kMaxHeadDim;
  };
  if (good(p.q) && good(p.k) && good(p.v)) return {};
  return "q, k, v: expected [B,T,H,K] and [B,T,HV,V] with K and V in 1..256, got " +
         shapes({{"q", &p.q}, {"k", &p.k}, {"v", &p.v}});
}

Broken head_count_not_divisible(const Problem& p) {
  if (H_of(p) == 0 || HV_of(p) % H_of(p) == 0) return {};
  return field_got("v", "HV a multiple of H",
                   "HV=" + std::to_string(HV_of(p)) + " H=" + std::to_string(H_of(p)));
}

Broken gate_params_missing(const Problem& p) {
  if (!p.use_gate_in_kernel || p.A_log || p.lower_bound) return {};
  return field_got("A_log, lower_bound", "one of them with use_gate_in_kernel", "neither");
}

Broken lower_bound_missing(const Problem& p) {
  if (!p.safe_gate || !p.use_gate_in_kernel || p.lower_bound) return {};
  return field_got("lower_bound", "a bound with safe_gate and use_gate_in_kernel", "none");
}

Broken empty_input(const Problem& p) {
  const bool tokens = T_of(p) > 0 || p.cu_seqlens;
  if (B_of(p) > 0 && H_of(p) > 0 && HV_of(p) > 0 && tokens) return {};
  return "q, v: expected B, H, HV > 0, and T > 0 without cu_seqlens, got " +
         shapes({{"q", &p.q}, {"v", &p.v}});
}

Broken shape_mismatch(const Problem& p) {
  const Shape v{B_of(p), T_of(p), HV_of(p), V_of(p)};
  const Shape g{B_of(p), T_of(p), HV_of(p), K_of(p)};
  if (p.k.shape == p.q.shape && p.v.shape == v && p.g.shape == g) return {};
  return "q, k, v, g: expected [B,T,H,K], [B,T,H,K], [B,T,HV,V], [B,T,HV,K], got " +
         shapes({{"q", &p.q}, {"k", &p.k}, {"v", &p.v}, {"g", &p.g}});
}

bool short_float(Dtype dtype) { return one_of(dtype, {Dtype::kBf16, Dtype::kF16, Dtype::kF32}); }

Broken dtype_unsupported(const Problem& p) {
  const bool same = p.k.dtype == p.q.dtype && p.v.dtype == p.q.dtype;
  if (same && short_float(p.q.dtype) && short_float(p.g.dtype)) return {};
  return field_got("q, k, v, g", "q, k, v of one dtype, each of bf16, f16, f32", dtypes_got(p));
}

Broken beta_dtype(const Problem& p) {
  if (short_float(p.beta.dtype)) return {};
  return field_got("beta", "bf16, f16 or f32", name(p.beta.dtype));
}

Broken cu_seqlens_span(const Problem& p) {
  if (!p.cu_seqlens || (bound(p, 0) == 0 && bound(p, N_of(p)) <= T_of(p))) return {};
  return field_got("cu_seqlens", "bounds from 0 to at most T = " + std::to_string(T_of(p)),
                   std::to_string(bound(p, 0)) + " to " + std::to_string(bound(p, N_of(p))));
}

Broken cu_seqlens_backward(const Problem& p) { return bad_step(p, true); }

Broken state_count_mismatch(const Problem& p) {
  if (!p.initial_state || p.initial_state->rank() == 0 || p.initial_state->shape[0] == N_of(p)) {
    return {};
  }
  return field_got("initial_state", "N = " + std::to_string(N_of(p)) + " states",
                   to_string(p.initial_state->shape));
}

Broken lower_bound_out_of_range(const Problem& p) {
  if (!p.safe_gate || !p.use_gate_in_kernel || !p.lower_bound) return {};
  if (*p.lower_bound >= -5 && *p.lower_bound < 0) return {};
  return field_got("lower_bound", "a bound in [-5, 0) with safe_gate", number(*p.lower_bound));
}

constexpr auto kPrefillRules = std::to_array<Rule>({
    {kChunkSizeUnsupported, "chunk_size is not 64", prefill_chunk_size},
    {kTrainingOnlyOption, "cp_context is given, or disable_recompute", training_only_option},
    {kNegEigvalWithFusedBeta, "allow_neg_eigval and use_beta_sigmoid_in_kernel",
     neg_eigval_with_fused_beta},
    {kHeadDimUnsupported, "q, k or v is not of rank 4, or its last dimension is not 128",
     prefill_head_dim},
    {kVarlenNeedsBatchOne, "cu_seqlens with B other than 1", varlen_needs_batch_one},
    {kGateParamsMissing, "use_gate_in_kernel without A_log or without dt_bias",
     prefill_gate_params},
    {kRawGateDtype, "use_gate_in_kernel and g is not bf16", raw_gate_dtype},
    {kEmptyInput, "B, T or H is 0", prefill_empty},
    {kShapeMismatch, "q, k, v, g differ in shape", prefill_shapes},
    {kDtypeUnsupported, "q, k, v are not bf16, or g is not bf16 or f32", prefill_dtypes},
    {kBetaShape, "beta is not [B,T,H]", beta_shape},
    {kBetaDtype, "beta is not bf16 or f32", prefill_beta_dtype},
    {kALogInvalid, "A_log is used, but not f32 with H elements", a_log_invalid},
    {kDtBiasInvalid, "dt_bias is used, but not f32 with H*128 elements", dt_bias_invalid},
    {kCuSeqlensShape, "cu_seqlens is not 1-D i32 or i64 with at least 2 entries", cu_seqlens_shape},
    {kCuSeqlensSpan, "cu_seqlens does not run from 0 to T", prefill_span},
    {kCuSeqlensNotIncreasing, "a sequence is empty or runs backward", prefill_not_increasing},
    {kInitialStateInvalid, "initial_state is not f32 [N,H,128,128]", state_not_f32},
    {kLowerBoundInvalid, "lower_bound is given, but not finite or not negative",
     lower_bound_invalid},
    {kScaleInvalid, "scale is given, but not finite", scale_invalid},
});

constexpr auto kSharedRules = std::to_array<Rule>({
    {kHeadDimUnsupported, "q, k or v is not of rank 4, or K or V is outside 1..256",
     head_dim_range},
    {kHeadCountNotDivisible, "HV is not a multiple of H", head_count_not_divisible},
    {kVarlenNeedsBatchOne, "cu_seqlens with B other than 1", varlen_needs_batch_one},
    {kGateParamsMissing, "use_gate_in_kernel with neither A_log nor lower_bound",
     gate_params_missing},
    {kLowerBoundMissing, "safe_gate and use_gate_in_kernel without lower_bound",
     lower_bound_missing},
    {kEmptyInput, "B, H or HV is 0, or T is 0 without cu_seqlens", empty_input},
    {kShapeMismatch, "q, k, v, g are not [B,T,H,K], [B,T,H,K], [B,T,HV,V], [B,T,HV,K]",
     shape_mismatch},
    {kDtypeUnsupported, "q, k, v are not of one dtype, or one of q, k, v, g is not bf16, f16, f32",
     dtype_unsupported},
    {kBetaShape, "beta is not [B,T,HV]", beta_shape},
    {kBetaDtype, "beta is not bf16, f16 or f32", beta_dtype},
    {kALogInvalid, "A_log is used, but not f32 with HV elements", a_log_invalid},
    {kDtBiasInvalid, "dt_bias is used, but not f32 with HV*K elements", dt_bias_invalid},
    {kCuSeqlensShape, "cu_seqlens is not 1-D i32 or i64 with at least 2 entries", cu_seqlens_shape},
    {kCuSeqlensSpan, "cu_seqlens does not start at 0, or ends beyond T", cu_seqlens_span},
    {kCuSeqlensNotIncreasing, "a sequence runs backward", cu_seqlens_backward},
    {kStateCountMismatch, "initial_state does not hold N states", state_count_mismatch},
    {kInitialStateInvalid, "initial_state is not f32 [N,HV,K,V] ([N,HV,V,K] when state_v_first)",
     state_not_f32},
    {kLowerBoundInvalid, "lower_bound is given, but not finite or not negative",
     lower_bound_invalid},
    {kLowerBoundOutOfRange, "safe_gate and use_gate_in_kernel with lower_bound outside [-5, 0)",
     lower_bound_out_of_range},
    {kScaleInvalid, "scale is given, but not finite", scale_invalid},
});

/// `first` rules, then the shared ones.
template <std::size_t kFirst>
constexpr auto then_shared(const std::array<Rule, kFirst>& first) {
  std::array<Rule, kFirst + kSharedRules.size()> rules{};
  std::ranges::copy(kSharedRules, std::ranges::copy(first, rules.begin()).out);
  return rules;
}

constexpr auto kChunkRules = then_shared(std::to_array<Rule>({
    {kChunkSizeUnsupported, "chunk_size is not 32 or 64", chunk_chunk_size},
    {kNegEigvalWithoutFusedBeta, "allow_neg_eigval without use_beta_sigmoid_in_kernel",
     neg_eigval_without_fused_beta},
}));

constexpr auto kRecurrentRules = then_shared(std::to_array<Rule>({
    {kChunkSizeUnsupported, "return_intermediate_states with chunk_size below 1",
     recurrent_chunk_size},
}));

GateForm gate_form(const Problem& p) {
  if (!p.use_gate_in_kernel) return GateForm::kLogDecay;
  return p.lower_bound ? GateForm::kLowerBound : GateForm::kSoftplus;
}

BetaForm beta_form(const Problem& p) {
  if (!p.use_beta_sigmoid_in_kernel) return BetaForm::kReady;
  return p.allow_neg_eigval ? BetaForm::kDoubledLogit : BetaForm::kLogit;
}

/// The sequences of an accepted problem; `num_chunks` receives the sum of their chunks.
std::vector<Sequence> sequences(const Problem& p, std::int64_t chunk, std::int64_t* num_chunks) {
  std::vector<Sequence> list;
  *num_chunks = 0;
  for (std::int64_t n = 0; n < N_of(p); ++n) {
    const Sequence sequence = p.cu_seqlens ? Sequence{0, bound(p, n), bound(p, n + 1), *num_chunks}
                                           : Sequence{n, 0, T_of(p), *num_chunks};
    list.push_back(sequence);
    *num_chunks += sequence.length() / chunk + (sequence.length() % chunk != 0 ? 1 : 0);
  }
  return list;
}

Semantics meaning(const Problem& p) {
  const GateForm gate = gate_form(p);
  // A chunk longer than every sequence is the same as one of T tokens, and keeps sums in range.
  const std::int64_t longest = std::max<std::int64_t>(T_of(p), 1);
  const std::int64_t chunk = std::clamp<std::int64_t>(p.chunk_size, 1, longest);
  std::int64_t num_chunks = 0;
  std::vector<Sequence> list = sequences(p, chunk, &num_chunks);
  return {.B = B_of(p),
          .T = T_of(p),
          .H = H_of(p),
          .HV = HV_of(p),
          .K = K_of(p),
          .V = V_of(p),
          .chunk = chunk,
          .num_chunks = num_chunks,
          .sequences = std::move(list),
          .gate = gate,
          .beta = beta_form(p),
          .state_layout = p.state_v_first ? StateLayout::kVK : StateLayout::kKV,
          .qk_norm = p.use_qk_l2norm_in_kernel ? QkNorm::kL2 : QkNorm::kNone,
          .scale = p.scale.value_or(1.0 / std::sqrt(static_cast<double>(K_of(p)))),
          .lower_bound = gate == GateForm::kLowerBound ? *p.lower_bound : 0.0,
          .final_state = p.output_final_state,
          .chunk_states = p.return_intermediate_states};
}

}  // namespace

std::span<const Rule> rules(Contract contract) noexcept {
  switch (contract) {
    case Contract::kKdaPrefill: return kPrefillRules;
    case Contract::kChunkKda: return kChunkRules;
    case Contract::kRecurrentKda: return kRecurrentRules;
  }
  return {};
}

Semantics check(Contract contract, const Problem& problem) {
  for (const Rule& rule : rules(contract)) {
    if (const Broken got = rule.broken(problem)) throw Error(rule.code, *got);
  }
  return meaning(problem);
}

}  // namespace kda
