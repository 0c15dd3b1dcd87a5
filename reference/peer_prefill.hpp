#pragma once

#include "reference/types/problem.hpp"

#include <cstdint>
#include <functional>

namespace kda::reference {

/// How an operand of a matrix product is held: f32 as it is, tf32, f16 (with the power of two that
/// the kernel gives it), one bf16, or a bf16 and the bf16 of the rest (three products then).
enum class OperandFormat : std::uint8_t { kF32, kTf32, kF16, kBf16, kBf16Split };

/// The operands of a chunked prefill kernel, in the order in which they are made. S is the state
/// before the chunk; names as in `PeerStages`.
struct PeerFormats {
  OperandFormat levels;     ///< decayed keys and queries of the off-diagonal blocks of A and Q
  OperandFormat merges;     ///< blocks of (I + diag(beta) A)^-1 while they are merged
  OperandFormat T;          ///< the inverse times beta
  OperandFormat Q;          ///< scores of the queries
  OperandFormat gated;      ///< Kg, Qg
  OperandFormat written;    ///< Kd
  OperandFormat S;          ///< where Kg and Qg read it; the state itself stays f32
  OperandFormat R;          ///< what T is multiplied with
  OperandFormat U_read;     ///< what Q is multiplied with
  OperandFormat U_written;  ///< what goes into the state
};

/// 11 bits where they are free, 16 where an error would grow: the fast default.
inline constexpr PeerFormats kPeerMixed{
    .levels = OperandFormat::kF16,
    .merges = OperandFormat::kBf16Split,
    .T = OperandFormat::kBf16Split,
    .Q = OperandFormat::kBf16Split,
    .gated = OperandFormat::kF16,
    .written = OperandFormat::kBf16Split,
    .S = OperandFormat::kF16,
    .R = OperandFormat::kBf16Split,
    .U_read = OperandFormat::kBf16Split,
    .U_written = OperandFormat::kBf16Split,
};

/// Every operand split.
inline constexpr PeerFormats kPeerSplit{
    .levels = OperandFormat::kBf16Split,
    .merges = OperandFormat::kBf16Split,
    .T = OperandFormat::kBf16Split,
    .Q = OperandFormat::kBf16Split,
    .gated = OperandFormat::kBf16Split,
    .written = OperandFormat::kBf16Split,
    .S = OperandFormat::kBf16Split,
    .R = OperandFormat::kBf16Split,
    .U_read = OperandFormat::kBf16Split,
    .U_written = OperandFormat::kBf16Split,
};

/// One bf16 everywhere but in the inverse.
inline constexpr PeerFormats kPeerBf16{
    .levels = OperandFormat::kBf16,
    .merges = OperandFormat::kBf16Split,
    .T = OperandFormat::kBf16Split,
    .Q = OperandFormat::kBf16,
    .gated = OperandFormat::kBf16,
    .written = OperandFormat::kBf16,
    .S = OperandFormat::kBf16,
    .R = OperandFormat::kBf16,
    .U_read = OperandFormat::kBf16,
    .U_written = OperandFormat::kBf16,
};

/// What the peer holds for one chunk of one value head, C = 64 rows whatever the length (rows past
/// the end are 0), f32, dense. Powers of two that only keep numbers inside a format are taken out
/// again, so each tensor compares directly with its exact value (`Stages` of the chunked
/// reference where it has one). k, q: after normalisation. G is the sum of log decays up to a
/// token.
struct PeerStages {
  std::int64_t n = 0;
  std::int64_t hv = 0;
  std::int64_t begin = 0;
  std::int64_t tokens = 0;

  Tensor k;       ///< [C,K]
  Tensor q;       ///< [C,K]
  Tensor beta;    ///< [C]
  Tensor A;       ///< [C,C], A_ij = sum_c k_ic k_jc exp(G_ic - G_jc), i > j
  Tensor Q;       ///< [C,C], the same with q_i, i >= j, before its operand rounding
  Tensor X;       ///< [C,C], (I + diag(beta) A)^-1 of the rows scaled as the kernel holds them
  Tensor T;       ///< [C,C], (I + diag(beta) A)^-1 diag(beta)
  Tensor Kg;      ///< [C,K], k exp(G), rounded as an operand
  Tensor Qg;      ///< [C,K], q exp(G), likewise
  Tensor Kd;      ///< [C,K], k exp(G_last - G), likewise
  Tensor decay;   ///< [K], exp(G_last)
  Tensor P;       ///< [C,V], Kg S
  Tensor R;       ///< [C,V], v - P
  Tensor U;       ///< [C,V], T R, before its operand rounding
  Tensor O;       ///< [C,V], scale (Qg S + Q U), before rounding to the dtype of o
  Tensor S;       ///< [K,V], the state before the chunk
  Tensor S_next;  ///< [K,V], after it
};

using PeerSink = std::function<void(const PeerStages&)>;

/// KDA, forward, in chunks of 64 tokens with the rounding of a prefill kernel on tensor cores:
/// every operand of a matrix product rounded as `formats` says, sums and everything else in f32, o
/// rounded once to the dtype of v, states f32. A peer to calibrate tolerances with, and to hold a
/// kernel's intermediate tensors against; not a reference. Calls `sink`, when there is one, for
/// every chunk in the order n, hv, token. `semantics` must come from `check` on this `problem`,
/// with chunk = 64. Throws nothing but std::bad_alloc and what the sink throws.
[[nodiscard]] Outputs peer_prefill(const Problem& problem, const Semantics& semantics,
                                   const PeerFormats& formats = kPeerMixed,
                                   const PeerSink& sink = {});

}  // namespace kda::reference
