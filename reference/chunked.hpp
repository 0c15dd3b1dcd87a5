#pragma once

#include "reference/types/problem.hpp"

#include <cstdint>
#include <functional>

namespace kda::reference {

/// What the chunked form computes on the way, for one chunk of one value head: the exact value of
/// every tensor that a chunked kernel may hold. All f64, dense, C = `tokens` rows. Indices i and j
/// are tokens of the chunk; G_i - G_j below stands for the sum of the log decays of tokens
/// j+1 ... i, taken by itself.
struct Stages {
  std::int64_t n = 0;       ///< sequence
  std::int64_t hv = 0;      ///< value head
  std::int64_t begin = 0;   ///< first token of the chunk, counted from the start of the sequence
  std::int64_t tokens = 0;  ///< C, at most the block length; fewer in a ragged tail

  Tensor gate_cumsum;  ///< G [C,K]: sum of the log decays (natural) of tokens 0 ... i
  Tensor A;  ///< [C,C], A_ij = sum_c k_ic k_jc exp(G_ic - G_jc) for i > j, else 0; without beta
  Tensor Q;  ///< [C,C], Q_ij = sum_c q_ic k_jc exp(G_ic - G_jc) for i >= j, else 0; without scale
  Tensor T;  ///< [C,C], (I + diag(beta) A)^-1 diag(beta), lower triangular
  Tensor W;  ///< [C,K], T (k exp(G))
  Tensor U;  ///< [C,V], T v
  Tensor state;  ///< [K,V], before the chunk, whatever the state layout of the problem
};

using StageSink = std::function<void(const Stages&)>;

/// Longest block. Chunks of more tokens are cut; `Stages` then describe blocks.
inline constexpr std::int64_t kMaxBlock = 64;

/// KDA, forward, in chunks of `semantics.chunk` tokens through the WY form of the product of the
/// rank-one updates (Kimi Linear report, arXiv 2510.26692, section 3): the second, independent way
/// to the result of `recurrent`, in f64, same outputs. With S the state before a chunk,
///
///   R = U - W S;   O = scale ((q exp(G)) S + Q R);   S' = exp(G_last) S + (k exp(G_last - G))^T R
///
/// No exponent is a difference of long sums and none is positive, so that g = 0, -1000 and -inf
/// are all exact cases. Calls `sink`, when there is one, for every block in the order n, hv, token.
/// `semantics` must come from `check` on this `problem`. Throws nothing but std::bad_alloc and what
/// the sink throws.
[[nodiscard]] Outputs chunked(const Problem& problem, const Semantics& semantics,
                              const StageSink& sink = {});

}  // namespace kda::reference
