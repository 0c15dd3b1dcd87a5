#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

FakeCudart& FakeCudart::get() {
  static FakeCudart fake;
  return fake;
}

/// Counts the call; its status. A pending fault is sticky, as it is on a device.
cudaError_t FakeCudart::made(const char* call) {
  const int number = ++calls[call];
  if (pending != cudaSuccess) return pending;
  return call == fail_call && number == fail_at ? fail_with : cudaSuccess;
}

namespace {
FakeCudart& fake() { return FakeCudart::get(); }
}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake().devices;
  return fake().made("cudaGetDeviceCount");
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {"fake", fake().major, 0};
  return fake().made("cudaGetDeviceProperties");
}

cudaError_t cudaSetDevice(int /*device*/) { return fake().made("cudaSetDevice"); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const cudaError_t status = fake().made("cudaStreamCreateWithFlags");
  if (status == cudaSuccess) {
    ++fake().live_streams;
    *stream = nullptr;
  }
  return status;
}

cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) {
  --fake().live_streams;
  return fake().made("cudaStreamDestroy");
}

cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) {
  return fake().made("cudaStreamSynchronize");
}

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  const cudaError_t status = fake().made("cudaMalloc");
  if (status != cudaSuccess) return status;
  ++fake().live_buffers;
  constexpr std::size_t kAlignment = 256;  // as the runtime promises
  *p = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return status;
}

cudaError_t cudaFree(void* p) {  // a lost device frees nothing, but the count says who tried
  --fake().live_buffers;
  std::free(p);
  return fake().made("cudaFree");
}

cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t /*stream*/) {
  const cudaError_t status = fake().made("cudaMemsetAsync");
  if (status == cudaSuccess) std::memset(p, value, bytes);
  return status;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t /*stream*/) {
  const cudaError_t status = fake().made(
      kind == cudaMemcpyHostToDevice ? "cudaMemcpyAsync to device" : "cudaMemcpyAsync to host");
  if (status == cudaSuccess) std::memcpy(to, from, bytes);
  return status;
}

cudaError_t cudaFuncSetAttribute(const void* /*kernel*/, cudaFuncAttribute /*attribute*/,
                                 int /*value*/) {
  return fake().made("cudaFuncSetAttribute");
}

cudaError_t cudaLaunchKernel(const void* /*kernel*/, dim3 /*grid*/, dim3 /*block*/,
                             void** /*arguments*/, std::size_t /*shared_bytes*/,
                             cudaStream_t /*stream*/) {
  const cudaError_t status = fake().made("cudaLaunchKernel");
  if (status == cudaSuccess) fake().pending = fake().fault_of_launch;
  return status;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice: return "no device";
    case cudaErrorInsufficientDriver: return "driver too old";
    default: return "an error of the stand-in";
  }
}
