#include "harness/mutate/mutant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

// Mistakes in the results as they are written.

namespace kda::harness::mutate {
namespace {

double value(const Tensor& x, std::int64_t i) { return load(x.view(), i); }

/// Element i becomes f(old tensor, i).
template <class F>
void replace(Tensor& x, F f) {
  const Tensor before = x;
  for (std::int64_t i = 0; i < before.size(); ++i) x.store(i, f(before, i));
}

/// Elements in rows of `width` move: row i becomes row from(i).
template <class F>
void move_rows(Tensor& x, std::int64_t width, F from) {
  replace(x, [&](const Tensor& before, std::int64_t i) {
    return value(before, from(i / width) * width + i % width);
  });
}

double truncated_bf16(double x) {
  const auto f = static_cast<float>(x);
  return kda::detail::float_of(kda::detail::bits_of(f) & 0xFFFF0000U);
}

void transpose_square(Tensor& x, const Semantics& s) {
  if (s.K != s.V) return;
  const std::int64_t one = s.K * s.V;
  replace(x, [&](const Tensor& before, std::int64_t i) {
    return value(before, i / one * one + i % s.V * s.K + i % one / s.V);
  });
}

/// [K,V] written where [V,K] is asked for.
void ignore_layout(Tensor& x, const Semantics& s) {
  if (s.state_layout == StateLayout::kKV) return;
  const std::int64_t one = s.K * s.V;
  replace(x, [&](const Tensor& before, std::int64_t i) {
    const std::int64_t k = i % one / s.V;
    const std::int64_t v = i % one % s.V;
    return value(before, i / one * one + v * s.K + k);
  });
}

void rotate_heads(Tensor& x, const Semantics& s, std::int64_t width) {
  move_rows(x, width, [&](std::int64_t i) { return i / s.HV * s.HV + (i + 1) % s.HV; });
}

void rotate_first(Tensor& x, std::int64_t width) {
  const std::int64_t rows = std::max<std::int64_t>(x.size() / width, 1);
  move_rows(x, width, [&](std::int64_t i) { return (i + 1) % rows; });
}

void to_bf16_all(Tensor& x) {
  replace(x, [](const Tensor& before, std::int64_t i) {
    return rounded(Dtype::kBf16, value(before, i));
  });
}

void clear(Tensor& x) {
  replace(x, [](const Tensor&, std::int64_t) { return 0.0; });
}

/// o of the last row of every sequence (or all rows of the last sequence) becomes 0.
void clear_rows(Outputs& out, const Activated& a, bool last_sequence) {
  const std::int64_t width = a.semantics.HV * a.semantics.V;
  for (std::size_t n = 0; n < a.spans.size(); ++n) {
    const Span& span = a.spans[n];
    if (last_sequence && n + 1 < a.spans.size()) continue;
    const std::int64_t begin = last_sequence ? span.begin : std::max(span.begin, span.end - 1);
    for (std::int64_t i = begin * width; i < span.end * width; ++i) out.o.store(i, 0);
  }
}

void clear_columns(Outputs& out, const Semantics& s, std::int64_t from) {
  replace(out.o, [&](const Tensor& before, std::int64_t i) {
    return i % s.V >= from ? 0 : value(before, i);
  });
}

/// One element in the middle of o.
void change_one(Outputs& out, double (*f)(double)) {
  const std::int64_t i = out.o.size() / 2;
  if (i < out.o.size()) out.o.store(i, f(value(out.o, i)));
}

std::vector<Mutant> whole_output() {
  return {
      {.name = "output_zero",
       .what = "o = 0",
       .write = [](Outputs& out, const Activated&) { clear(out.o); }},
      {.name = "output_mean",
       .what = "o is its mean everywhere",
       .write =
           [](Outputs& out, const Activated&) {
             double sum = 0;
             for (std::int64_t i = 0; i < out.o.size(); ++i) sum += value(out.o, i);
             const double mean = sum / static_cast<double>(std::max<std::int64_t>(out.o.size(), 1));
             replace(out.o, [mean](const Tensor&, std::int64_t) { return mean; });
           }},
      {.name = "output_negated",
       .what = "-o",
       .write =
           [](Outputs& out, const Activated&) {
             replace(out.o, [](const Tensor& x, std::int64_t i) { return -value(x, i); });
           }},
      {.name = "output_truncated",
       .what = "o cut to bf16 instead of rounded",
       .write =
           [](Outputs& out, const Activated&) {
             replace(out.o,
                     [](const Tensor& x, std::int64_t i) { return truncated_bf16(value(x, i)); });
           }},
      {.name = "output_small_flushed",
       .what = "|o| below 1e-4 becomes 0",
       .write =
           [](Outputs& out, const Activated&) {
             replace(out.o, [](const Tensor& x, std::int64_t i) {
               return std::abs(value(x, i)) < 1e-4 ? 0 : value(x, i);
             });
           }},
      {.name = "output_clipped",
       .what = "|o| no larger than 1",
       .write =
           [](Outputs& out, const Activated&) {
             replace(out.o, [](const Tensor& x, std::int64_t i) {
               return std::clamp(value(x, i), -1.0, 1.0);
             });
           }},
      {.name = "output_gain",
       .what = "o 1% too large",
       .write =
           [](Outputs& out, const Activated&) {
             replace(out.o, [](const Tensor& x, std::int64_t i) { return 1.01 * value(x, i); });
           }},
  };
}

std::vector<Mutant> shifted_output() {
  return {
      {.name = "output_one_token_late",
       .what = "o shifted by one token",
       .write =
           [](Outputs& out, const Activated& a) {
             move_rows(out.o, a.semantics.HV * a.semantics.V,
                       [](std::int64_t i) { return std::max<std::int64_t>(i - 1, 0); });
           }},
      {.name = "output_heads_rotated",
       .what = "o of the next head",
       .write = [](Outputs& out,
                   const Activated& a) { rotate_heads(out.o, a.semantics, a.semantics.V); }},
      {.name = "output_columns_reversed",
       .what = "columns of o in reverse",
       .write =
           [](Outputs& out, const Activated& a) {
             const std::int64_t V = a.semantics.V;
             move_rows(out.o, 1, [V](std::int64_t i) { return i / V * V + V - 1 - i % V; });
           }},
      {.name = "output_pairs_swapped",
       .what = "columns 2i and 2i+1 of o swapped",
       .write =
           [](Outputs& out, const Activated& a) {
             const std::int64_t V = a.semantics.V;
             move_rows(out.o, 1, [V](std::int64_t i) {
               return (i % V ^ 1) < V ? i / V * V + (i % V ^ 1) : i;
             });
           }},
  };
}

std::vector<Mutant> output_parts() {
  return {
      {.name = "output_last_rows_unwritten",
       .what = "o of the last token of each sequence is 0",
       .write = [](Outputs& out, const Activated& a) { clear_rows(out, a, false); }},
      {.name = "output_last_sequence_unwritten",
       .what = "o of the last sequence is 0",
       .write = [](Outputs& out, const Activated& a) { clear_rows(out, a, true); }},
      {.name = "output_last_column_unwritten",
       .what = "last column of o is 0",
       .write = [](Outputs& out,
                   const Activated& a) { clear_columns(out, a.semantics, a.semantics.V - 1); }},
      {.name = "output_columns_beyond_32",
       .what = "columns of o from 32 on are 0",
       .write = [](Outputs& out, const Activated& a) { clear_columns(out, a.semantics, 32); }},
      {.name = "output_one_nan",
       .what = "one element of o is NaN",
       .write =
           [](Outputs& out, const Activated&) {
             change_one(out, [](double) { return std::numeric_limits<double>::quiet_NaN(); });
           }},
      {.name = "output_one_doubled",
       .what = "one element of o is twice as large",
       .write = [](Outputs& out,
                   const Activated&) { change_one(out, [](double x) { return 2 * x; }); }},
      {.name = "output_one_negated",
       .what = "one element of o has the wrong sign",
       .write = [](Outputs& out,
                   const Activated&) { change_one(out, [](double x) { return -x; }); }},
  };
}

std::vector<Mutant> final_states() {
  return {
      {.name = "final_zero",
       .what = "final state 0",
       .write =
           [](Outputs& out, const Activated&) {
             if (out.final_state) clear(*out.final_state);
           }},
      {.name = "final_transposed",
       .what = "square final states transposed",
       .write =
           [](Outputs& out, const Activated& a) {
             if (out.final_state) transpose_square(*out.final_state, a.semantics);
           }},
      {.name = "final_layout_ignored",
       .what = "[K,V] written where [V,K] is asked for",
       .write =
           [](Outputs& out, const Activated& a) {
             if (out.final_state) ignore_layout(*out.final_state, a.semantics);
           }},
      {.name = "final_heads_rotated",
       .what = "final state of the next head",
       .write =
           [](Outputs& out, const Activated& a) {
             const Semantics& s = a.semantics;
             if (out.final_state) rotate_heads(*out.final_state, s, s.K * s.V);
           }},
      {.name = "final_sequences_rotated",
       .what = "final state of the next sequence",
       .write =
           [](Outputs& out, const Activated& a) {
             const Semantics& s = a.semantics;
             if (out.final_state) rotate_first(*out.final_state, s.HV * s.K * s.V);
           }},
      {.name = "final_bf16",
       .what = "final state rounded to bf16",
       .write =
           [](Outputs& out, const Activated&) {
             if (out.final_state) to_bf16_all(*out.final_state);
           }},
      {.name = "final_last_element_unwritten",
       .what = "last element of each state is 0",
       .write =
           [](Outputs& out, const Activated& a) {
             if (!out.final_state) return;
             const std::int64_t one = a.semantics.K * a.semantics.V;
             replace(*out.final_state, [one](const Tensor& x, std::int64_t i) {
               return i % one == one - 1 ? 0 : value(x, i);
             });
           }},
  };
}

std::vector<Mutant> chunk_states() {
  return {
      {.name = "h_zero",
       .what = "h = 0",
       .write =
           [](Outputs& out, const Activated&) {
             if (out.h) clear(*out.h);
           }},
      {.name = "h_rotated",
       .what = "h of the next chunk",
       .write =
           [](Outputs& out, const Activated& a) {
             const Semantics& s = a.semantics;
             if (out.h) rotate_first(*out.h, s.HV * s.K * s.V);
           }},
      {.name = "h_bf16",
       .what = "h rounded to bf16",
       .write =
           [](Outputs& out, const Activated&) {
             if (out.h) to_bf16_all(*out.h);
           }},
      {.name = "h_layout_ignored",
       .what = "h as [K,V] where [V,K] is asked for",
       .write =
           [](Outputs& out, const Activated& a) {
             if (out.h) ignore_layout(*out.h, a.semantics);
           }},
      {.name = "h_last_unwritten",
       .what = "h of the last chunk is 0",
       .write =
           [](Outputs& out, const Activated& a) {
             if (!out.h) return;
             const std::int64_t one = a.semantics.HV * a.semantics.K * a.semantics.V;
             for (std::int64_t i = std::max<std::int64_t>(out.h->size() - one, 0);
                  i < out.h->size(); ++i) {
               out.h->store(i, 0);
             }
           }},
  };
}

}  // namespace

std::vector<Mutant> output_mutants() {
  return together({whole_output(), shifted_output(), output_parts()});
}

std::vector<Mutant> state_mutants() { return together({final_states(), chunk_states()}); }

}  // namespace kda::harness::mutate
