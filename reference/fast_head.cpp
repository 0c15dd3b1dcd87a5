#include "reference/fast_head.hpp"

#include <algorithm>

namespace kda::reference {
namespace {

/// Tokens between two changes of the slice: long enough to pay for loading a slice into the L1
/// cache, short enough that the prepared steps stay in the L2 cache.
constexpr std::int64_t kTile = 64;
static_assert(kTile % kStepTokens == 0);

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

FastHead::FastHead(const ActivatedReader& reader, const Semantics& semantics,
                   const FastKernel& kernel)
    : reader_(reader),
      semantics_(semantics),
      kernel_(kernel),
      steps_(index(kTile / kStepTokens)),
      pitch_((semantics.V + kColumns - 1) / kColumns * kColumns),
      values_(index(kTile * pitch_)) {}

void FastHead::run(SliceRange slices, HeadResult& result) {
  const Sequence& sequence = semantics_.sequences[index(result.n)];
  const std::int64_t state_size = semantics_.K * semantics_.V;
  load_state(slices, result);
  for (std::int64_t first = 0; first < sequence.length();) {
    std::int64_t count = std::min(kTile, sequence.length() - first);
    if (semantics_.chunk_states) {  // a tile must not run over a state that is asked for
      const std::int64_t in_chunk = first % semantics_.chunk;
      count = std::min(count, semantics_.chunk - in_chunk);
      if (in_chunk == 0) {
        store_state(slices, result.h.data() + first / semantics_.chunk * state_size);
      }
    }
    prepare(result, first, count);
    advance(slices, first, count, result);
    first += count;
  }
  store_state(slices, result.final_state.data());
}

std::int64_t FastHead::columns(std::int64_t slice) const {
  return std::min<std::int64_t>(kColumns, semantics_.V - slice * kColumns);
}

void FastHead::load_state(SliceRange slices, const HeadResult& result) {
  const std::vector<double> initial = reader_.initial_state(result.n, result.hv);
  state_.assign(index((slices.end - slices.begin) * semantics_.K), ColumnRow{});
  auto row = state_.begin();
  for (std::int64_t slice = slices.begin; slice < slices.end; ++slice) {
    for (std::int64_t k = 0; k < semantics_.K; ++k, ++row) {
      std::copy_n(initial.data() + k * semantics_.V + slice * kColumns, columns(slice), row->x);
    }
  }
}

void FastHead::store_state(SliceRange slices, double* state) const {
  auto row = state_.begin();
  for (std::int64_t slice = slices.begin; slice < slices.end; ++slice) {
    for (std::int64_t k = 0; k < semantics_.K; ++k, ++row) {
      std::copy_n(row->x, columns(slice), state + k * semantics_.V + slice * kColumns);
    }
  }
}

void FastHead::prepare(const HeadResult& head, std::int64_t first, std::int64_t count) {
  const Sequence& sequence = semantics_.sequences[index(head.n)];
  const std::int64_t V = semantics_.V;
  for (std::int64_t t = 0; t < count; t += kStepTokens) {
    const std::int64_t tokens = std::min<std::int64_t>(kStepTokens, count - t);
    reader_.read(sequence, head.hv, first + t, tokens, rows_);
    kernel_.prepare({.q = rows_.q.data(),
                     .k = rows_.k.data(),
                     .log_decay = rows_.log_decay.data(),
                     .beta = rows_.beta.data(),
                     .tokens = static_cast<int>(tokens),
                     .K = static_cast<int>(semantics_.K)},
                    steps_[index(t / kStepTokens)]);
    auto row = values_.begin() + t * pitch_;
    for (std::int64_t i = 0; i < tokens; ++i, row += pitch_) {
      std::copy_n(rows_.v.begin() + i * V, V, row);
    }
    // Tokens that only fill the step are written with strength 0, which a stale NaN would survive.
    std::fill(row, row + (kStepTokens - tokens) * pitch_, 0.0);
  }
}

void FastHead::advance(SliceRange slices, std::int64_t first, std::int64_t count,
                       HeadResult& result) {
  ColumnRow* state = state_.data();
  for (std::int64_t slice = slices.begin; slice < slices.end; ++slice, state += semantics_.K) {
    double* values = values_.data() + slice * kColumns;
    for (std::int64_t t = 0; t < count; t += kStepTokens, values += kStepTokens * pitch_) {
      kernel_.advance(steps_[index(t / kStepTokens)], static_cast<int>(semantics_.K),
                      semantics_.scale, {.v_then_o = values, .pitch = pitch_}, state);
    }
  }
  const std::int64_t begin = slices.begin * kColumns;
  const std::int64_t end = std::min(slices.end * kColumns, semantics_.V);
  for (std::int64_t t = 0; t < count; ++t) {
    std::copy_n(values_.data() + t * pitch_ + begin, end - begin,
                result.o.data() + (first + t) * semantics_.V + begin);
  }
}

}  // namespace kda::reference
