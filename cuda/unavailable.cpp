#include "cuda/fit_batch_plan.hpp"
#include "cuda/prefill_plan.hpp"
#include "cuda/recurrent_plan.hpp"
#include "cuda/runtime.hpp"
#include "reference/types/error.hpp"

// Stands in for the device code where no CUDA compiler was found.

namespace kda::cuda {

std::unique_ptr<Device> open_gpu() {
  throw Error(ErrorCode::kDeviceUnavailable, "gpu: this program was built without a CUDA compiler");
}

const void* fit_gpu_symbol() { return nullptr; }
const void* prefill_factors_symbol(std::size_t /*index*/) { return nullptr; }
const void* prefill_chain_symbol(std::size_t /*index*/) { return nullptr; }
const void* recurrent_gpu_symbol(std::size_t /*index*/) { return nullptr; }

}  // namespace kda::cuda
