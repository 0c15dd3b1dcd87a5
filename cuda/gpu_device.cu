#include "cuda/runtime.hpp"
#include "reference/types/error.hpp"

#include <string>
#include <vector>

#include <cuda_runtime.h>

namespace kda::cuda {
namespace {

/// Faults of a kernel, found by any later call: until the process ends every call returns them.
bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw Error(is_sticky(status) ? ErrorCode::kDeviceLost : ErrorCode::kCudaRuntime,
              std::string(call) + " at " + file + ":" + std::to_string(line) + ": " +
                  cudaGetErrorString(status));
}
#define KDA_CUDA_CHECK(call) check((call), #call, __FILE__, __LINE__)

class GpuDevice final : public Device {
 public:
  GpuDevice() { KDA_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~GpuDevice() override {
    // Nothing to tell anybody here: after a sticky error these fail as well.
    for (void* p : buffers_) static_cast<void>(cudaFree(p));
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  std::byte* allocate(const char* name, std::size_t bytes) override {
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes == 0 ? 1 : bytes);
    if (status == cudaErrorMemoryAllocation) {
      throw Error(ErrorCode::kOutOfMemory, std::string(name) + ": wanted " + std::to_string(bytes) +
                                               " bytes of device memory, got none");
    }
    check(status, "cudaMalloc", __FILE__, __LINE__);
    buffers_.push_back(p);
    KDA_CUDA_CHECK(cudaMemsetAsync(p, 0xFF, bytes, stream_));
    return static_cast<std::byte*>(p);
  }

  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    KDA_CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_));
  }

  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    KDA_CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_));
    KDA_CUDA_CHECK(cudaStreamSynchronize(stream_));
  }

  void launch(const KernelForms& kernel, const LaunchShape& shape, void* params) override {
    const dim3 grid(shape.grid.x, shape.grid.y, shape.grid.z);
    const dim3 block(shape.block.x, shape.block.y, shape.block.z);
    if (shape.shared_bytes > 48 * 1024) {
      KDA_CUDA_CHECK(cudaFuncSetAttribute(kernel.gpu, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(shape.shared_bytes)));
    }
    void* arguments[] = {params};
    KDA_CUDA_CHECK(
        cudaLaunchKernel(kernel.gpu, grid, block, arguments, shape.shared_bytes, stream_));
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<void*> buffers_;
};

}  // namespace

std::unique_ptr<Device> open_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver ||
      (status == cudaSuccess && count == 0)) {
    throw Error(ErrorCode::kDeviceUnavailable, std::string("gpu: ") + cudaGetErrorString(status));
  }
  check(status, "cudaGetDeviceCount", __FILE__, __LINE__);
  cudaDeviceProp properties{};
  KDA_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  if (properties.major < 8) {
    throw Error(ErrorCode::kArchitectureUnsupported,
                std::string(properties.name) + ": wanted compute capability 8.0, got " +
                    std::to_string(properties.major) + "." + std::to_string(properties.minor));
  }
  KDA_CUDA_CHECK(cudaSetDevice(0));
  return std::make_unique<GpuDevice>();
}

}  // namespace kda::cuda
