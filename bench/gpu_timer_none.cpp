#include "bench/gpu_timer.hpp"
#include "reference/types/error.hpp"

namespace kda::bench {

std::unique_ptr<GpuTimer> open_gpu_timer() {
  throw Error(ErrorCode::kDeviceUnavailable, "gpu: this program was built without device code");
}

}  // namespace kda::bench
