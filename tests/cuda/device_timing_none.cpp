#include "reference/types/error.hpp"
#include "tests/cuda/device_timing.hpp"

namespace kda::cuda {

namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kDeviceUnavailable, "gpu: this program was built without device code");
}

}  // namespace

std::vector<DecodeTime> time_decoding() { refuse(); }
std::vector<PrefillTime> time_prefill() { refuse(); }

}  // namespace kda::cuda
