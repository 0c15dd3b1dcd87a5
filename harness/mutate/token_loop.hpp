#pragma once

#include "harness/mutate/activated.hpp"

#include <cstdint>

namespace kda::harness::mutate {

/// One mistake in the token recurrence.
enum class TokenFault : std::uint8_t {
  kNone,
  kDecayAfterUpdate,    ///< S <- diag(exp g)(S + beta k (v - u)^T), u from the undecayed state
  kPredictUndecayed,    ///< u = k^T S before the decay
  kOutputBeforeUpdate,  ///< o from the decayed state, without this token's write
  kOutputLate,          ///< o from the state before this token's decay
  kNoPrediction,        ///< u = 0: plain linear attention
  kBetaOnValueOnly,     ///< beta v - u
  kBetaTwice,           ///< beta^2
  kDecayOnValues,       ///< decay of channel v % K on column v
  kQueryPredicts,       ///< u = q^T S
  kStateBf16,           ///< state rounded to bf16 after every token
  kStateBf16Chunk,      ///< ... after every chunk
  kDeltaBf16,           ///< v - u rounded to bf16
  kOutputSumBf16,       ///< q^T S summed up in bf16
  kLostAtChunk,         ///< state is 0 again after every chunk
  kInitialAtChunk,      ///< state is the initial one again after every chunk
  kStaleSequence,       ///< a sequence starts with what the one before it left
  kStaleHead,           ///< a head starts with what the one before it left, when state is absent
  kFinalBeforeLast,     ///< final state without the last token
  kFinalOfFirstChunk,   ///< final state after the first chunk
  kHAfterChunk,         ///< h after each chunk
  kHOneLate,            ///< h one token after the chunk's start
};

/// The recurrence token by token, with a mistake in it.
[[nodiscard]] Outputs run_tokens(const Activated& a, TokenFault fault, Precision precision);

}  // namespace kda::harness::mutate
