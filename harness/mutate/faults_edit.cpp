#include "harness/mutate/mutant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

// Mistakes in the activated values: gates, values of another token, head, channel or sequence.

namespace kda::harness::mutate {
namespace {

using Values = std::vector<double>;

void round_all(Values& x, Dtype dtype) {
  for (double& value : x) value = rounded(dtype, value);
}

/// The sum of two bf16: 16 bits of x.
double two_bf16(double x) {
  const double high = rounded(Dtype::kBf16, x);
  return std::isfinite(high) ? high + rounded(Dtype::kBf16, x - high) : x;
}

/// Row t of every sequence becomes its row t + shift; rows that have none stay.
void shift_tokens(const Activated& a, Values& x, std::int64_t shift) {
  const Values before = x;
  const auto width = static_cast<std::int64_t>(x.size()) / a.rows;
  for (const Span& span : a.spans) {
    for (std::int64_t row = span.begin; row < span.end; ++row) {
      const std::int64_t from = row + shift;
      if (from < span.begin || from >= span.end) continue;
      std::copy_n(before.begin() + from * width, width, x.begin() + row * width);
    }
  }
}

/// x [rows,HV,width]: head hv becomes head from(hv, HV).
void map_heads(const Activated& a, Values& x, std::int64_t (*from)(std::int64_t, std::int64_t)) {
  const Values before = x;
  const std::int64_t HV = a.semantics.HV;
  const auto width = static_cast<std::int64_t>(x.size()) / a.rows / HV;
  for (std::int64_t i = 0; i < a.rows * HV; ++i) {
    const std::int64_t source = i / HV * HV + from(i % HV, HV);
    std::copy_n(before.begin() + source * width, width, x.begin() + i * width);
  }
}

std::int64_t first_head(std::int64_t, std::int64_t) { return 0; }
std::int64_t next_head(std::int64_t hv, std::int64_t HV) { return (hv + 1) % HV; }

/// Channels [from, K) of q and k become 0.
void cut_channels(Activated& a, std::int64_t from) {
  const std::int64_t K = a.semantics.K;
  for (std::size_t i = 0; i < a.q.size(); ++i) {
    if (static_cast<std::int64_t>(i) % K < from) continue;
    a.q[i] = a.k[i] = 0;
  }
}

template <class F>
void each_gate(Activated& a, F f) {
  for (double& g : a.g) g = f(g);
}

void cut_tails(Activated& a, std::int64_t multiple) {
  for (Span& span : a.spans) span.end -= span.length() % multiple;
}

/// State of sequence n becomes that of sequence n + 1.
void rotate_states(Activated& a) {
  if (a.state.empty()) return;
  const auto one = static_cast<std::ptrdiff_t>(a.state.size() / a.spans.size());
  std::rotate(a.state.begin(), a.state.begin() + one, a.state.end());
}

void rotate_state_heads(Activated& a) {
  const Semantics& s = a.semantics;
  const std::int64_t one = s.K * s.V;
  for (std::int64_t n = 0; n < s.N(); ++n) {
    const auto begin = a.state.begin() + n * s.HV * one;
    std::rotate(begin, begin + one, begin + s.HV * one);
  }
}

/// [K,V] read as [V,K] or the other way round.
void misread_states(Activated& a, bool square_only) {
  const Semantics& s = a.semantics;
  if (square_only && s.K != s.V) return;
  const Values before = a.state;
  const std::int64_t one = s.K * s.V;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(a.state.size()); ++i) {
    const std::int64_t k = i % one / s.V;
    const std::int64_t v = i % one % s.V;
    a.state[static_cast<std::size_t>(i)] =
        before[static_cast<std::size_t>(i / one * one + v * s.K + k)];
  }
}

void clear_state(Activated& a, bool of_empty_only) {
  const auto one = static_cast<std::ptrdiff_t>(a.semantics.HV * a.semantics.K * a.semantics.V);
  for (std::size_t n = 0; n < a.spans.size(); ++n) {
    if (of_empty_only && a.spans[n].length() > 0) continue;
    std::fill_n(a.state.begin() + static_cast<std::ptrdiff_t>(n) * one, one, 0.0);
  }
}

std::vector<Mutant> gate_formats() {
  return {
      {.name = "gate_bf16",
       .what = "log decay rounded to bf16",
       .edit = [](Activated& a) { round_all(a.g, Dtype::kBf16); }},
      {.name = "gate_f16",
       .what = "log decay rounded to f16",
       .edit = [](Activated& a) { round_all(a.g, Dtype::kF16); }},
      {.name = "decay_bf16",
       .what = "exp(g) rounded to bf16",
       .edit =
           [](Activated& a) {
             each_gate(a, [](double g) { return std::log(rounded(Dtype::kBf16, std::exp(g))); });
           }},
      {.name = "gate_power_of_two",
       .what = "2^g in place of e^g",
       .edit = [](Activated& a) { each_gate(a, [](double g) { return g * std::log(2.0); }); }},
      {.name = "gate_log2_taken_for_ln",
       .what = "e^(g log2 e)",
       .edit = [](Activated& a) { each_gate(a, [](double g) { return g / std::log(2.0); }); }},
  };
}

std::vector<Mutant> gate_limits() {
  return {
      {.name = "gate_clamped_at_5",
       .what = "log decays no lower than -5",
       .edit = [](Activated& a) { each_gate(a, [](double g) { return std::max(g, -5.0); }); }},
      {.name = "gate_clamped_at_20",
       .what = "log decays no lower than -20",
       .edit = [](Activated& a) { each_gate(a, [](double g) { return std::max(g, -20.0); }); }},
      {.name = "gate_small_is_none",
       .what = "log decays above -1e-3 are 0",
       .edit = [](Activated& a) { each_gate(a, [](double g) { return g > -1e-3 ? 0 : g; }); }},
      {.name = "gate_minus_inf_is_nan",
       .what = "a decay of exactly 0 is computed as inf * 0",
       .edit =
           [](Activated& a) {
             each_gate(a, [](double g) {
               return std::isinf(g) ? std::numeric_limits<double>::quiet_NaN() : g;
             });
           }},
      {.name = "gate_absent",
       .what = "no decay at all",
       .edit = [](Activated& a) { each_gate(a, [](double) { return 0.0; }); }},
      {.name = "gate_small_in_steps",
       .what = "log(1 + e^x) in f32: small decays in steps of 2^-23",
       .edit =
           [](Activated& a) {
             each_gate(a,
                       [](double g) { return g < -1e-2 ? g : std::round(g * 0x1p23) * 0x1p-23; });
           }},
      {.name = "gate_two_bf16",
       .what = "log decay in two bf16",
       .edit = [](Activated& a) { each_gate(a, two_bf16); }},
  };
}

std::vector<Mutant> gate_places() {
  return {
      {.name = "gate_first_token_skipped",
       .what = "no decay before the first token",
       .edit =
           [](Activated& a) {
             for (const Span& span : a.spans) {
               if (span.length() == 0) continue;
               const auto width = a.semantics.HV * a.semantics.K;
               std::fill_n(a.g.begin() + span.begin * width, width, 0.0);
             }
           }},
      {.name = "gate_of_first_channel",
       .what = "one decay for all channels",
       .edit =
           [](Activated& a) {
             const auto K = static_cast<std::size_t>(a.semantics.K);
             for (std::size_t i = 0; i < a.g.size(); ++i) a.g[i] = a.g[i / K * K];
           }},
      {.name = "gate_per_head_mean",
       .what = "the mean decay for all channels",
       .edit =
           [](Activated& a) {
             const auto K = static_cast<std::ptrdiff_t>(a.semantics.K);
             for (auto row = a.g.begin(); row < a.g.end(); row += K) {
               double sum = 0;
               for (auto g = row; g < row + K; ++g) sum += *g;
               std::fill_n(row, K, sum / static_cast<double>(K));
             }
           }},
  };
}

std::vector<Mutant> token_roundings() {
  return {
      {.name = "beta_bf16",
       .what = "beta rounded to bf16",
       .edit = [](Activated& a) { round_all(a.beta, Dtype::kBf16); }},
      {.name = "beta_f16",
       .what = "beta rounded to f16",
       .edit = [](Activated& a) { round_all(a.beta, Dtype::kF16); }},
      {.name = "beta_clipped",
       .what = "beta no larger than 1",
       .edit =
           [](Activated& a) {
             for (double& x : a.beta) x = std::min(x, 1.0);
           }},
  };
}

std::vector<Mutant> token_places() {
  return {
      {.name = "beta_of_next_token",
       .what = "beta one token early",
       .edit = [](Activated& a) { shift_tokens(a, a.beta, 1); }},
      {.name = "gate_of_previous_token",
       .what = "decays one token late",
       .edit = [](Activated& a) { shift_tokens(a, a.g, -1); }},
      {.name = "value_of_previous_token",
       .what = "v one token late",
       .edit = [](Activated& a) { shift_tokens(a, a.v, -1); }},
      {.name = "key_of_next_token",
       .what = "k one token early",
       .edit = [](Activated& a) { shift_tokens(a, a.k, 1); }},
      {.name = "query_of_previous_token",
       .what = "q one token late",
       .edit = [](Activated& a) { shift_tokens(a, a.q, -1); }},
      {.name = "query_key_swapped",
       .what = "q and k in each other's place",
       .edit = [](Activated& a) { std::swap(a.q, a.k); }},
      {.name = "key_negated",
       .what = "-k: the state and o change sign",
       .edit =
           [](Activated& a) {
             for (double& x : a.k) x = -x;
           }},
  };
}

std::vector<Mutant> operand_roundings() {
  return {
      {.name = "operands_bf16",
       .what = "q, k and v rounded to bf16",
       .edit =
           [](Activated& a) {
             round_all(a.q, Dtype::kBf16);
             round_all(a.k, Dtype::kBf16);
             round_all(a.v, Dtype::kBf16);
           }},
      {.name = "operands_two_bf16",
       .what = "q, k and v in two bf16 each",
       .edit =
           [](Activated& a) {
             for (Values* x : {&a.q, &a.k, &a.v}) {
               for (double& value : *x) value = two_bf16(value);
             }
           }},
      {.name = "beta_two_bf16",
       .what = "beta in two bf16",
       .edit =
           [](Activated& a) {
             for (double& x : a.beta) x = two_bf16(x);
           }},
      {.name = "key_bf16",
       .what = "k rounded to bf16 after l2norm",
       .edit = [](Activated& a) { round_all(a.k, Dtype::kBf16); }},
  };
}

std::vector<Mutant> bounds() {
  return {
      {.name = "bounds_begin_late",
       .what = "sequences begin one token late",
       .edit =
           [](Activated& a) {
             for (Span& span : a.spans) span.begin = std::min(span.begin + 1, span.end);
           }},
      {.name = "bounds_end_early",
       .what = "sequences end one token early",
       .edit =
           [](Activated& a) {
             for (Span& span : a.spans) span.end = std::max(span.begin, span.end - 1);
           }},
      {.name = "bounds_end_late",
       .what = "sequences take in the row after their last",
       .edit =
           [](Activated& a) {
             for (Span& span : a.spans) span.end = std::min(span.end + 1, a.rows);
           }},
      {.name = "bounds_begin_early",
       .what = "sequences take in the row before their first",
       .edit =
           [](Activated& a) {
             for (Span& span : a.spans) span.begin = std::max<std::int64_t>(span.begin - 1, 0);
           }},
      {.name = "tail_of_16_dropped",
       .what = "length rounded down to a multiple of 16",
       .edit = [](Activated& a) { cut_tails(a, 16); }},
      {.name = "tail_of_2_dropped",
       .what = "length rounded down to a multiple of 2",
       .edit = [](Activated& a) { cut_tails(a, 2); }},
      {.name = "last_sequence_lost",
       .what = "the last sequence is not processed",
       .edit =
           [](Activated& a) {
             if (a.spans.size() > 1) a.spans.back().end = a.spans.back().begin;
           }},
  };
}

std::vector<Mutant> initial_states() {
  return {
      {.name = "initial_state_ignored",
       .what = "sequences start at 0",
       .edit = [](Activated& a) { clear_state(a, false); }},
      {.name = "initial_state_of_empty_lost",
       .what = "empty sequences end at 0",
       .edit = [](Activated& a) { clear_state(a, true); }},
      {.name = "initial_state_transposed",
       .what = "square initial states transposed",
       .edit = [](Activated& a) { misread_states(a, true); }},
      {.name = "initial_state_layout",
       .what = "[K,V] read as [V,K]",
       .edit = [](Activated& a) { misread_states(a, false); }},
      {.name = "initial_state_of_next_sequence",
       .what = "state of another sequence",
       .edit = rotate_states},
      {.name = "initial_state_of_next_head",
       .what = "state of another head",
       .edit = rotate_state_heads},
      {.name = "initial_state_two_bf16",
       .what = "initial state in two bf16",
       .edit =
           [](Activated& a) {
             for (double& x : a.state) x = two_bf16(x);
           }},
      {.name = "initial_state_bf16",
       .what = "initial state rounded to bf16",
       .edit = [](Activated& a) { round_all(a.state, Dtype::kBf16); }},
  };
}

}  // namespace

std::vector<Mutant> gate_mutants() {
  return together({gate_formats(), gate_limits(), gate_places()});
}

std::vector<Mutant> token_mutants() {
  return together({token_roundings(), token_places(), operand_roundings()});
}

std::vector<Mutant> head_mutants() {
  return {
      {.name = "beta_of_first_head",
       .what = "beta of head 0 for all",
       .edit = [](Activated& a) { map_heads(a, a.beta, first_head); }},
      {.name = "gate_of_first_head",
       .what = "decays of head 0 for all",
       .edit = [](Activated& a) { map_heads(a, a.g, first_head); }},
      {.name = "value_of_next_head",
       .what = "v of the next head",
       .edit = [](Activated& a) { map_heads(a, a.v, next_head); }},
      {.name = "last_channel_lost",
       .what = "channel K-1 of q and k unread",
       .edit = [](Activated& a) { cut_channels(a, a.semantics.K - 1); }},
      {.name = "channels_cut_to_power_of_two",
       .what = "channels beyond the last power of two unread",
       .edit =
           [](Activated& a) {
             std::int64_t whole = 1;
             while (whole * 2 <= a.semantics.K) whole *= 2;
             cut_channels(a, whole);
           }},
      {.name = "channels_beyond_64",
       .what = "channels from 64 on unread",
       .edit = [](Activated& a) { cut_channels(a, 64); }},
      {.name = "batch_row_0",
       .what = "k, q, v of batch row 0 for all",
       .edit =
           [](Activated& a) {
             for (Values* x : {&a.q, &a.k, &a.v}) {
               const auto one = static_cast<std::ptrdiff_t>(x->size()) / a.semantics.B;
               for (std::int64_t b = 1; b < a.semantics.B; ++b) {
                 std::copy_n(x->begin(), one, x->begin() + b * one);
               }
             }
           }},
  };
}

std::vector<Mutant> sequence_mutants() { return together({bounds(), initial_states()}); }

}  // namespace kda::harness::mutate
