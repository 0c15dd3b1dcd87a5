#include "harness/case/tensor_slice.hpp"

#include <cstring>

namespace kda::harness {

Tensor slice(const Tensor& x, std::size_t axis, std::span<const Range> ranges) {
  Shape shape = x.shape();
  const std::int64_t inner = dense_strides(shape)[axis] * size_of(x.dtype());
  const std::int64_t outer = shape[axis] * inner;
  shape[axis] = 0;
  for (const Range& range : ranges) shape[axis] += range.count;
  Tensor part(x.dtype(), shape);
  if (part.bytes() == 0) return part;
  std::byte* to = part.data();
  for (std::int64_t from = 0; from < x.bytes(); from += outer) {
    for (const Range& range : ranges) {
      const std::int64_t bytes = range.count * inner;
      std::memcpy(to, x.data() + from + range.begin * inner, static_cast<std::size_t>(bytes));
      to += bytes;
    }
  }
  return part;
}

}  // namespace kda::harness
