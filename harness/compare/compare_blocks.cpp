#include "harness/compare/compare_blocks.hpp"

namespace kda::harness {
namespace {

/// A [rows, cols] view into a dense tensor, `offset` elements from its start.
TensorView part(const Tensor& tensor, std::int64_t offset, Shape shape, Shape strides) {
  return {tensor.data() + offset * size_of(tensor.dtype()), tensor.dtype(), std::move(shape),
          std::move(strides)};
}

/// [length, V] of one head.
TensorView output_part(const Tensor& o, const Semantics& s, const Sequence& sequence,
                       std::int64_t hv) {
  const std::int64_t first = ((sequence.b * s.T + sequence.begin) * s.HV + hv) * s.V;
  return part(o, first, {sequence.length(), s.V}, {s.HV * s.V, 1});
}

/// [K, V] of state `i` of one head.
TensorView state_part(const Tensor& states, const Semantics& s, std::int64_t i, std::int64_t hv) {
  const Shape strides = s.state_layout == StateLayout::kKV ? Shape{s.V, 1} : Shape{1, s.K};
  return part(states, (i * s.HV + hv) * s.K * s.V, {s.K, s.V}, strides);
}

std::int64_t chunks_of(const Semantics& s, std::int64_t n) {
  return (s.sequences[static_cast<std::size_t>(n)].length() + s.chunk - 1) / s.chunk;
}

/// Block `chunk` of sequence n (o and final_state have one, number 0).
Block block_of(OutputKind kind, const Semantics& s, const Tensor& expected, const Tensor& got,
               const Place& at, std::int64_t chunk) {
  const Sequence& sequence = s.sequences[static_cast<std::size_t>(at.n)];
  Block block{.origin = at, .expected = {}, .got = {}, .tokens = sequence.length()};
  if (kind == OutputKind::kO) {
    block.expected = output_part(expected, s, sequence, at.hv);
    block.got = output_part(got, s, sequence, at.hv);
    return block;
  }
  const bool is_h = kind == OutputKind::kH;
  const std::int64_t row = is_h ? sequence.first_chunk + chunk : at.n;
  if (is_h) block.origin.chunk = row;
  block.chunks_before = is_h ? chunk : chunks_of(s, at.n);
  block.expected = state_part(expected, s, row, at.hv);
  block.got = state_part(got, s, row, at.hv);
  return block;
}

}  // namespace

Place Block::place(std::int64_t row, std::int64_t col) const {
  Place place = origin;
  place.v = col;
  (place.kind == OutputKind::kO ? place.t : place.k) = row;
  return place;
}

Shape shape_of(OutputKind kind, const Semantics& semantics) {
  switch (kind) {
    case OutputKind::kO: return semantics.o_shape();
    case OutputKind::kFinalState: return semantics.state_shape(semantics.N());
    case OutputKind::kH: return semantics.state_shape(semantics.num_chunks);
  }
  return {};
}

std::vector<Block> blocks_of(OutputKind kind, const Semantics& s, const Tensor& expected,
                             const Tensor& got) {
  std::vector<Block> blocks;
  for (std::int64_t n = 0; n < s.N(); ++n) {
    const std::int64_t count = kind == OutputKind::kH ? chunks_of(s, n) : 1;
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
      for (std::int64_t hv = 0; hv < s.HV; ++hv) {
        const Place at{.kind = kind, .n = n, .hv = hv, .v = 0, .t = {}, .k = {}, .chunk = {}};
        blocks.push_back(block_of(kind, s, expected, got, at, chunk));
      }
    }
  }
  return blocks;
}

}  // namespace kda::harness
