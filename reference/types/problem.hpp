#pragma once

#include "reference/types/tensor.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kda {

/// The entry points whose input rules are known (see contract.hpp).
enum class Contract : std::uint8_t { kKdaPrefill, kChunkKda, kRecurrentKda };

/// "kda_prefill", "chunk_kda", "recurrent_kda".
[[nodiscard]] std::string_view name(Contract contract) noexcept;
[[nodiscard]] std::optional<Contract> find_contract(std::string_view name) noexcept;

/// A call of a KDA entry point, exactly as the caller made it: nothing here is checked, defaulted
/// or renamed. `check` (contract.hpp) turns it into Semantics or throws. Views own nothing.
///
///   q, k           [B,T,H,K]
///   v              [B,T,HV,V]    value head hv reads query/key head hv / (HV/H)
///   g              [B,T,HV,K]    natural-log decay, or the raw gate with use_gate_in_kernel
///   beta           [B,T,HV]      write strength, or logits with use_beta_sigmoid_in_kernel
///   A_log          HV elements of any shape, f32
///   dt_bias        HV*K elements of any shape, f32, row-major [HV,K]
///   initial_state  [N,HV,K,V], or [N,HV,V,K] with state_v_first, f32; absent = zeros
///   cu_seqlens     [N+1] i32 or i64, bounds in a flattened batch (B == 1); absent = B sequences
struct Problem {
  TensorView q;
  TensorView k;
  TensorView v;
  TensorView g;
  TensorView beta;
  std::optional<TensorView> A_log;
  std::optional<TensorView> dt_bias;
  std::optional<TensorView> initial_state;
  std::optional<TensorView> cu_seqlens;

  std::int64_t chunk_size = 64;
  std::optional<double> scale;        ///< absent = K^-0.5
  std::optional<double> lower_bound;  ///< its presence selects the bounded gate
  bool use_qk_l2norm_in_kernel = false;
  bool use_gate_in_kernel = false;
  bool safe_gate = false;
  bool use_beta_sigmoid_in_kernel = false;
  bool allow_neg_eigval = false;
  bool state_v_first = false;
  bool output_final_state = false;
  bool return_intermediate_states = false;
  bool cp_context = false;  ///< "was given": the object itself never matters
  bool disable_recompute = false;
};

/// What `g` holds and what becomes of it.
enum class GateForm : std::uint8_t {
  kLogDecay,    ///< g is the log decay
  kSoftplus,    ///< -exp(A_log) * softplus(g + dt_bias)
  kLowerBound,  ///< lower_bound * sigmoid(exp(A_log) * (g + dt_bias))
};

/// What `beta` holds and what becomes of it.
enum class BetaForm : std::uint8_t {
  kReady,         ///< beta itself
  kLogit,         ///< sigmoid(beta)
  kDoubledLogit,  ///< 2 * sigmoid(beta)
};

enum class StateLayout : std::uint8_t { kKV, kVK };
enum class QkNorm : std::uint8_t { kNone, kL2 };

/// Tokens [begin, end) of batch row `b`; `first_chunk` is its first row in `h`.
struct Sequence {
  std::int64_t b;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first_chunk;

  [[nodiscard]] std::int64_t length() const noexcept { return end - begin; }
};

/// What an accepted Problem means. Made by `check` only.
struct Semantics {
  std::int64_t B;
  std::int64_t T;
  std::int64_t H;
  std::int64_t HV;
  std::int64_t K;
  std::int64_t V;
  std::int64_t chunk;
  std::int64_t num_chunks;  ///< NT = sum over sequences of ceil(length / chunk)
  std::vector<Sequence> sequences;
  GateForm gate;
  BetaForm beta;
  StateLayout state_layout;
  QkNorm qk_norm;
  double scale;
  double lower_bound;  ///< 0 unless gate == kLowerBound
  bool final_state;
  bool chunk_states;

  [[nodiscard]] std::int64_t N() const noexcept {
    return static_cast<std::int64_t>(sequences.size());
  }
  [[nodiscard]] Shape o_shape() const { return {B, T, HV, V}; }
  /// [count,HV,K,V] or [count,HV,V,K]; count = N for final_state, num_chunks for h.
  [[nodiscard]] Shape state_shape(std::int64_t count) const {
    return state_layout == StateLayout::kKV ? Shape{count, HV, K, V} : Shape{count, HV, V, K};
  }
};

/// What an implementation returns: o [B,T,HV,V]; final_state and h as state_shape says, where asked
/// for. Any float dtype; the f64 references return f64. Rows of `o` that belong to no sequence are
/// not compared.
struct Outputs {
  Tensor o;
  std::optional<Tensor> final_state;
  std::optional<Tensor> h;
};

}  // namespace kda
