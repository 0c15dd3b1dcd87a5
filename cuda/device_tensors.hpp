#pragma once

#include "cuda/output_view.hpp"
#include "cuda/runtime.hpp"
#include "reference/types/tensor.hpp"

#include <optional>

// Tensors between host memory and a device that has memory of its own. Private to cuda/.

namespace kda::cuda {

/// A dense copy of the view's elements in device memory.
[[nodiscard]] TensorView on_device(const char* name, const TensorView& view, Device& device);

void move_optional(const char* name, std::optional<TensorView>& view, Device& device);

/// A dense buffer of the dtype and shape of `like`.
[[nodiscard]] OutputView output(const char* name, const Tensor& like, Device& device);

/// Waits for the stream.
void fetch(Tensor& to, const OutputView& from, Device& device);

}  // namespace kda::cuda
