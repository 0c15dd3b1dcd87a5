#pragma once

#include "harness/mutate/activated.hpp"

#include <cstdint>

namespace kda::harness::mutate {

/// One mistake in the chunked form. With G the running sum of log decays in a chunk, S0 the state
/// before it, D_ij = exp(G_i - G_j):
///   A_ij = k_i.(D_ij k_j), i > j;  Q_ij = q_i.(D_ij k_j), i >= j;  T = (I + diag(beta) A)^-1
///   diag(beta) R = T (v - (k exp(G)) S0);  O = scale ((q exp(G)) S0 + Q R);  S' = exp(G_n) S0 +
///   (D_n k)^T R
enum class ChunkFault : std::uint8_t {
  kNone,
  kQueryMaskExclusive,  ///< Q_ij for i > j only
  kQueryUnmasked,       ///< Q_ij for all i, j
  kKeyMaskInclusive,    ///< A_ij for i >= j
  kGateExclusive,       ///< G_i without g_i
  kGateNotReset,        ///< G runs on over chunk borders
  kTailRows,            ///< a short last chunk takes in the rows that follow it
  kTailDecay,           ///< a short last chunk's state decays by the rows that follow it too
  kLastRowLost,         ///< last row of every full chunk: no output, no write
  kLastRowNotWritten,   ///< last row of every full chunk does not reach the state
  kTailDropped,         ///< a short last chunk is not processed
  kStateNotCarried,     ///< S0 = 0 from the second chunk on
  kStateNotDecayed,     ///< S' without exp(G_n)
  kStateTransposed,     ///< S0 transposed from the second chunk on (K = V)
  kStateOneChunkOld,    ///< S0 of the chunk before
  kStateBf16,           ///< S' rounded to bf16
  kKeysUndecayed,       ///< S' with k in place of D_n k
  kKeysFromStart,       ///< S' with exp(G_j) k
  kFactored,            ///< D_ij = exp(G_i) exp(-G_j), in f32
  kFactoredClamped,     ///< the same, -G_j clamped to 80
  kFactoredMiddle,      ///< the same, around the middle row
  kAnchorFuture,        ///< the same around the middle row, operands rounded to bf16
  kNoWriteStrength,     ///< T = (I + diag(beta) A)^-1
  kStrengthOnColumns,   ///< T = (I + A diag(beta))^-1 diag(beta)
  kFirstNeumannTerm,    ///< T = (I - diag(beta) A) diag(beta)
  kShortProduct,        ///< (I - L)(I + L^2)(I + L^4): right for 8 rows only
  kHalfProduct,         ///< the whole product, in f16
  kBlockDiagonal,       ///< T of blocks of 16 rows, nothing between them
  kNoOldState,          ///< R = T v
  kPredictUndecayed,    ///< R from k S0
  kReadUndecayed,       ///< O from q S0
  kWritesUnread,        ///< O without Q R
  kStaleInverse,        ///< T of a head's first chunk used for all that are as long
  kGateSumBf16,         ///< G rounded to bf16
  kFinalOneChunkEarly,  ///< final state before the last chunk
  kHAfterChunk,         ///< h after each chunk
};

/// The chunked form, with a mistake in it. In working precision every operand of a product is
/// rounded to the dtype of q.
[[nodiscard]] Outputs run_chunks(const Activated& a, ChunkFault fault, Precision precision);

}  // namespace kda::harness::mutate
