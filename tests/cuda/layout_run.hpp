#pragma once

#include "cuda/runtime.hpp"
#include "tests/cuda/layout_check.hpp"

#include <cstdint>
#include <string>
#include <vector>

// The layout kernels on whatever device: the executor in the tests, a GPU in the device check.

namespace kda::cuda::layout {

[[nodiscard]] std::vector<float> run_mma(Device& device, Half half, const MmaOperandSet& set);
[[nodiscard]] std::vector<std::uint32_t> run_ldmatrix(Device& device, unsigned matrices,
                                                      bool transposed);
[[nodiscard]] std::vector<std::uint32_t> run_movmatrix(Device& device);

/// One layout test with what is wrong, or nothing.
struct LayoutResult {
  std::string name;
  std::string wrong;
};
[[nodiscard]] std::vector<LayoutResult> run_all_layouts(Device& device);

/// Place of a kernel in the list that both compilers go through.
enum class LayoutKernel : std::uint8_t {
  kMmaBf16,
  kMmaF16,
  kLdmatrix1,
  kLdmatrix2,
  kLdmatrix4,
  kLdmatrixTrans1,
  kLdmatrixTrans2,
  kLdmatrixTrans4,
  kMovmatrix,
};
/// Of the device code (layout_kernels.cu); nullptr where it is not linked in (layout_no_gpu.cpp).
[[nodiscard]] const void* layout_gpu_symbol(LayoutKernel kernel);

}  // namespace kda::cuda::layout
