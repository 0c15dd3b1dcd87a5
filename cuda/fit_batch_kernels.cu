#include "cuda/kernels/fit_kernel.hpp"

namespace kda::cuda {

// Declared in fit_batch_plan.hpp, which is host code.
const void* fit_gpu_symbol() { return reinterpret_cast<const void*>(&kernels::fit_kernel); }

}  // namespace kda::cuda
