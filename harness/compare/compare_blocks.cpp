#include "harness/compare/compare_blocks.hpp"

namespace kda::harness {
namespace {

/// Where a block lies in its tensor.
struct Part {
  std::int64_t first;
  Shape shape;
  Shape strides;

  [[nodiscard]] TensorView of(const Tensor& tensor) const {
    return {tensor.data() + first * size_of(tensor.dtype()), tensor.dtype(), shape, strides};
  }
};

/// [length, V] of one head.
Part output_part(const Semantics& s, const Sequence& sequence, std::int64_t hv) {
  const std::int64_t first = ((sequence.b * s.T + sequence.begin) * s.HV + hv) * s.V;
  return {first, {sequence.length(), s.V}, {s.HV * s.V, 1}};
}

/// [K, V] of state `i` of one head.
Part state_part(const Semantics& s, std::int64_t i, std::int64_t hv) {
  const Shape strides = s.state_layout == StateLayout::kKV ? Shape{s.V, 1} : Shape{1, s.K};
  return {(i * s.HV + hv) * s.K * s.V, {s.K, s.V}, strides};
}

std::int64_t chunks_of(const Semantics& s, std::int64_t n) {
  return (s.sequences[static_cast<std::size_t>(n)].length() + s.chunk - 1) / s.chunk;
}

/// Block `chunk` of sequence n (o and final_state have one, number 0).
Block block_of(OutputKind kind, const Semantics& s, const BlockTensors& tensors, const Block& at,
               std::int64_t chunk) {
  const Sequence& sequence = s.sequences[static_cast<std::size_t>(at.origin.n)];
  const bool is_h = kind == OutputKind::kH;
  const std::int64_t row = is_h ? sequence.first_chunk + chunk : at.origin.n;
  Block block = at;
  block.tokens = is_h ? chunk * s.chunk : sequence.length();
  if (is_h) block.origin.chunk = row;
  const Part part =
      kind == OutputKind::kO ? output_part(s, sequence, at.hv) : state_part(s, row, at.hv);
  block.first = part.first;
  block.expected = part.of(tensors.expected);
  block.got = part.of(tensors.got);
  if (tensors.sigma != nullptr) block.sigma = part.of(*tensors.sigma);
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

std::vector<OutputKind> wanted_outputs(const Semantics& semantics) {
  std::vector<OutputKind> kinds{OutputKind::kO};
  if (semantics.final_state) kinds.push_back(OutputKind::kFinalState);
  if (semantics.chunk_states) kinds.push_back(OutputKind::kH);
  return kinds;
}

std::vector<Block> blocks_of(OutputKind kind, const Semantics& s, const BlockTensors& tensors,
                             std::int64_t first_head) {
  std::vector<Block> blocks;
  for (std::int64_t n = 0; n < s.N(); ++n) {
    const std::int64_t count = kind == OutputKind::kH ? chunks_of(s, n) : 1;
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
      for (std::int64_t hv = 0; hv < s.HV; ++hv) {
        Block at;
        at.origin.kind = kind;
        at.origin.n = n;
        at.origin.hv = first_head + hv;
        at.hv = hv;
        blocks.push_back(block_of(kind, s, tensors, at, chunk));
      }
    }
  }
  return blocks;
}

}  // namespace kda::harness
