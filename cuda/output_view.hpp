#pragma once

#include "reference/types/dtype.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>

namespace kda::cuda {

/// A tensor that is written; strides in elements.
struct OutputView {
  std::byte* data = nullptr;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  Shape strides;
};

}  // namespace kda::cuda
