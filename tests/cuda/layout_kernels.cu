#include "tests/cuda/layout_kernels.hpp"
#include "tests/cuda/layout_run.hpp"

namespace kda::cuda::layout {

// In the order of LayoutKernel.
const void* layout_gpu_symbol(LayoutKernel kernel) {
  static const void* const kSymbols[] = {
      reinterpret_cast<const void*>(&mma_kernel<true>),
      reinterpret_cast<const void*>(&mma_kernel<false>),
      reinterpret_cast<const void*>(&ldmatrix_kernel<1, false>),
      reinterpret_cast<const void*>(&ldmatrix_kernel<2, false>),
      reinterpret_cast<const void*>(&ldmatrix_kernel<4, false>),
      reinterpret_cast<const void*>(&ldmatrix_kernel<1, true>),
      reinterpret_cast<const void*>(&ldmatrix_kernel<2, true>),
      reinterpret_cast<const void*>(&ldmatrix_kernel<4, true>),
      reinterpret_cast<const void*>(&movmatrix_kernel),
  };
  return kSymbols[static_cast<std::size_t>(kernel)];
}

}  // namespace kda::cuda::layout
