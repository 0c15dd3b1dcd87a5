#include "harness/run/case_edit.hpp"

#include <cstring>

namespace kda::harness {
namespace {

/// Bytes of one step along `axis`, and how many blocks of that axis there are.
struct Blocks {
  std::int64_t step;
  std::int64_t count;
};

Blocks blocks_of(const Shape& shape, std::size_t axis, std::int64_t element) {
  Blocks blocks{element, 1};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i < axis) blocks.count *= shape[i];
    if (i > axis) blocks.step *= shape[i];
  }
  return blocks;
}

void copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Rows of the parts, one after another: [B,T,...] -> [1,rows,...].
Tensor gathered(const Tensor& x, const std::vector<Part>& parts) {
  Shape shape = x.shape();
  const std::int64_t T = shape[1];
  const std::int64_t row = blocks_of(shape, 1, size_of(x.dtype())).step;
  shape[0] = 1;
  shape[1] = 0;
  for (const Part& part : parts) shape[1] += part.end - part.begin;
  Tensor to(x.dtype(), shape);
  std::byte* at = to.data();
  for (const Part& part : parts) {
    const std::int64_t bytes = (part.end - part.begin) * row;
    copy(at, x.data() + (part.b * T + part.begin) * row, bytes);
    at += bytes;
  }
  return to;
}

}  // namespace

Tensor joined(const Tensor& a, const Tensor& b, std::size_t axis) {
  const Blocks blocks = blocks_of(a.shape(), axis, size_of(a.dtype()));
  const std::int64_t a_bytes = a.shape()[axis] * blocks.step;
  const std::int64_t b_bytes = b.shape()[axis] * blocks.step;
  Shape shape = a.shape();
  shape[axis] += b.shape()[axis];
  Tensor to(a.dtype(), shape);
  for (std::int64_t i = 0; i < blocks.count; ++i) {
    copy(to.data() + i * (a_bytes + b_bytes), a.data() + i * a_bytes, a_bytes);
    copy(to.data() + i * (a_bytes + b_bytes) + a_bytes, b.data() + i * b_bytes, b_bytes);
  }
  return to;
}

Tensor rolled(const Tensor& x, std::size_t axis, std::int64_t shift) {
  const std::int64_t extent = x.shape()[axis];
  if (extent == 0) return x;
  const std::int64_t at = shift % extent;
  return joined(slice(x, axis, at, extent - at), slice(x, axis, 0, at), axis);
}

Tensor widened(const Tensor& x) {
  Tensor to(Dtype::kF64, x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) to.store(i, load(x.view(), i));
  return to;
}

std::vector<Part> parts_of(const Semantics& semantics) {
  std::vector<Part> parts;
  for (const Sequence& s : semantics.sequences) {
    parts.push_back({s.b, s.begin, s.end, static_cast<std::int64_t>(parts.size())});
  }
  return parts;
}

Case case_of_parts(const Case& from, const std::vector<Part>& parts, bool packed,
                   const Tensor* states) {
  Case to = from;
  to.expected.reset();
  auto& inputs = std::get<KdaCase>(to.inputs).inputs;
  for (const char* name : {"q", "k", "v", "g", "beta"}) {
    inputs.at(name) = gathered(inputs.at(name), parts);
  }
  inputs.erase("cu_seqlens");
  inputs.erase("initial_state");
  if (packed || parts.size() != 1) {
    Tensor bounds(Dtype::kI64, {static_cast<std::int64_t>(parts.size()) + 1});
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      sum += parts[i].end - parts[i].begin;
      bounds.as<std::int64_t>()[i + 1] = sum;
    }
    inputs.emplace("cu_seqlens", bounds);
  }
  if (states != nullptr) {
    Shape shape = states->shape();
    shape[0] = static_cast<std::int64_t>(parts.size());
    Tensor chosen(states->dtype(), shape);
    const std::int64_t one = states->bytes() / states->shape()[0];
    for (std::size_t i = 0; i < parts.size(); ++i) {
      copy(chosen.data() + static_cast<std::int64_t>(i) * one,
           states->data() + parts[i].state * one, one);
    }
    inputs.emplace("initial_state", chosen);
  }
  return to;
}

void put_parts(Tensor& o, const std::vector<Part>& parts, const Tensor& o_of_parts) {
  const std::int64_t T = o.shape()[1];
  const std::int64_t row = blocks_of(o.shape(), 1, size_of(o.dtype())).step;
  const std::byte* at = o_of_parts.data();
  for (const Part& part : parts) {
    const std::int64_t bytes = (part.end - part.begin) * row;
    copy(o.data() + (part.b * T + part.begin) * row, at, bytes);
    at += bytes;
  }
}

void put_states(Tensor& to, const std::vector<Part>& parts, const Tensor& from) {
  const std::int64_t one = to.shape()[0] == 0 ? 0 : to.bytes() / to.shape()[0];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copy(to.data() + parts[i].state * one, from.data() + static_cast<std::int64_t>(i) * one, one);
  }
}

}  // namespace kda::harness
