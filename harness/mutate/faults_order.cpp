#include "harness/mutate/mutant.hpp"

// Mistakes in the recurrence itself: token_loop.hpp and chunk_loop.hpp say what each is.

namespace kda::harness::mutate {
namespace {

Mutant tokens(const char* name, const char* what, TokenFault fault) {
  return {.name = name, .what = what, .form = Mutant::Form::kTokens, .token = fault};
}

Mutant chunks(const char* name, const char* what, ChunkFault fault) {
  return {.name = name, .what = what, .form = Mutant::Form::kChunks, .chunk = fault};
}

}  // namespace

std::vector<Mutant> order_mutants() {
  using enum TokenFault;
  return {
      tokens("decay_after_update", "decay after the write", kDecayAfterUpdate),
      tokens("predict_undecayed", "prediction from the state before the decay", kPredictUndecayed),
      tokens("output_before_update", "output without this token's write", kOutputBeforeUpdate),
      tokens("output_of_old_state", "output from the state before this token", kOutputLate),
      tokens("no_prediction", "plain linear attention", kNoPrediction),
      tokens("beta_on_value_only", "beta v - u", kBetaOnValueOnly),
      tokens("beta_twice", "beta squared", kBetaTwice),
      tokens("decay_on_values", "decay along V", kDecayOnValues),
      tokens("query_predicts", "prediction q^T S", kQueryPredicts),
      tokens("state_bf16_token", "state in bf16, rounded every token", kStateBf16),
      tokens("state_bf16_chunk", "state in bf16, rounded every chunk", kStateBf16Chunk),
      tokens("difference_bf16", "v - u rounded to bf16", kDeltaBf16),
      tokens("output_sum_bf16", "output summed up in bf16", kOutputSumBf16),
      tokens("state_lost_at_chunk", "state 0 after every chunk", kLostAtChunk),
      tokens("state_initial_at_chunk", "initial state after every chunk", kInitialAtChunk),
      tokens("state_of_last_sequence", "state of the sequence before", kStaleSequence),
      tokens("state_of_last_head", "state of the head before", kStaleHead),
      tokens("final_before_last_token", "final state lacks the last token", kFinalBeforeLast),
      tokens("final_of_first_chunk", "final state after the first chunk", kFinalOfFirstChunk),
      tokens("h_after_chunk", "h after each chunk", kHAfterChunk),
      tokens("h_one_token_late", "h one token late", kHOneLate),
  };
}

std::vector<Mutant> chunk_mutants() {
  using enum ChunkFault;
  return {
      chunks("query_mask_exclusive", "a token does not read its own write", kQueryMaskExclusive),
      chunks("query_unmasked", "tokens read later writes", kQueryUnmasked),
      chunks("key_mask_inclusive", "diagonal of A not masked", kKeyMaskInclusive),
      chunks("gate_sum_exclusive", "running gate without the row's own", kGateExclusive),
      chunks("gate_sum_not_reset", "running gate goes on over chunk borders", kGateNotReset),
      chunks("tail_takes_next_rows", "a short chunk takes in the rows behind it", kTailRows),
      chunks("tail_decays_by_next_rows", "a short chunk decays by rows behind it", kTailDecay),
      chunks("chunk_last_row_lost", "last row of a full chunk lost", kLastRowLost),
      chunks("chunk_last_row_not_written", "last row does not reach the state", kLastRowNotWritten),
      chunks("tail_dropped", "short chunks not processed", kTailDropped),
      chunks("state_not_carried", "every chunk starts at 0", kStateNotCarried),
      chunks("state_not_decayed", "state passes a chunk undecayed", kStateNotDecayed),
      chunks("state_transposed_at_chunk", "state transposed at a border", kStateTransposed),
      chunks("state_one_chunk_old", "state of the chunk before", kStateOneChunkOld),
      chunks("chunk_state_bf16", "state in bf16 between chunks", kStateBf16),
      chunks("keys_undecayed", "writes reach the end undecayed", kKeysUndecayed),
      chunks("keys_decayed_from_start", "writes decayed from the wrong side", kKeysFromStart),
      chunks("gate_factored", "exp(G_i) exp(-G_j) in f32: overflow", kFactored),
      chunks("gate_factored_clamped", "the same, clamped at 80", kFactoredClamped),
      chunks("gate_factored_middle", "the same, around the middle row", kFactoredMiddle),
      chunks("gate_anchor_future", "operands rounded around a later row", kAnchorFuture),
      chunks("inverse_without_beta", "T without beta on its right", kNoWriteStrength),
      chunks("inverse_beta_on_columns", "beta on the wrong side of A", kStrengthOnColumns),
      chunks("inverse_first_term", "I - L for the inverse", kFirstNeumannTerm),
      chunks("inverse_short_product", "product form for 8 rows only", kShortProduct),
      chunks("inverse_product_f16", "product form in f16", kHalfProduct),
      chunks("inverse_blocks_only", "blocks of 16 rows, nothing between", kBlockDiagonal),
      chunks("old_state_not_subtracted", "R = T v", kNoOldState),
      chunks("old_state_predicted_undecayed", "prediction from the undecayed state",
             kPredictUndecayed),
      chunks("old_state_read_undecayed", "output from the undecayed state", kReadUndecayed),
      chunks("writes_unread", "output without the chunk's own writes", kWritesUnread),
      chunks("inverse_stale", "T of the chunk before", kStaleInverse),
      chunks("gate_sum_bf16", "running gate rounded to bf16", kGateSumBf16),
      chunks("final_one_chunk_early", "final state before the last chunk", kFinalOneChunkEarly),
      chunks("chunk_h_after", "h after each chunk", kHAfterChunk),
  };
}

}  // namespace kda::harness::mutate
