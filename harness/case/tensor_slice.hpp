#pragma once

#include "reference/types/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kda::harness {

/// Elements [begin, begin + count) of an axis.
struct Range {
  std::int64_t begin;
  std::int64_t count;
};

/// The ranges of `axis` one after the other; the axis stays.
[[nodiscard]] Tensor slice(const Tensor& x, std::size_t axis, std::span<const Range> ranges);

/// Elements [begin, begin + count) along `axis`.
[[nodiscard]] inline Tensor slice(const Tensor& x, std::size_t axis, std::int64_t begin,
                                  std::int64_t count) {
  const Range range{begin, count};
  return slice(x, axis, {&range, 1});
}

}  // namespace kda::harness
