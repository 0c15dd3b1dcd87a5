#pragma once

#include "harness/case/case.hpp"
#include "harness/case/tensor_slice.hpp"

#include <cstdint>
#include <vector>

// Cases made from cases, for laws that relate the answers to two calls.

namespace kda::harness {

/// Element i along `axis` is element (i + shift) mod extent of x.
[[nodiscard]] Tensor rolled(const Tensor& x, std::size_t axis, std::int64_t shift);
/// b behind a along `axis`. Same dtype, same other extents.
[[nodiscard]] Tensor joined(const Tensor& a, const Tensor& b, std::size_t axis);
/// The elements as f64.
[[nodiscard]] Tensor widened(const Tensor& x);

/// Tokens [begin, end) of row `b`, and the state before them.
struct Part {
  std::int64_t b;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t state;  ///< index into the states given
};

/// A call on these parts, in their order: alone and unpacked when there is one part and `packed` is
/// false, else flattened with cu_seqlens. `states` [.,HV,.,.] in the state layout; null = none.
/// Expected values are dropped.
[[nodiscard]] Case case_of_parts(const Case& from, const std::vector<Part>& parts, bool packed,
                                 const Tensor* states);

/// The whole of each sequence of the case.
[[nodiscard]] std::vector<Part> parts_of(const Semantics& semantics);

/// Writes o [1,rows,HV,V] of a call on `parts` into the rows of `o` [B,T,HV,V] they came from.
void put_parts(Tensor& o, const std::vector<Part>& parts, const Tensor& o_of_parts);

/// State i of `from` [.,HV,.,.] into slot parts[i].state of `to`.
void put_states(Tensor& to, const std::vector<Part>& parts, const Tensor& from);

}  // namespace kda::harness
