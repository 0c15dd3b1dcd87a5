#pragma once

// The part of the CUDA runtime that cuda/gpu_device.cu calls, as a stand-in whose calls can be made
// to fail and whose allocations are counted. Names and shapes are the runtime's own; the numbers of
// the errors are those of its documentation.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorECCUncorrectable = 214,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
using cudaStream_t = struct FakeStream*;
inline constexpr unsigned cudaStreamNonBlocking = 1;
struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  dim3(unsigned nx, unsigned ny, unsigned nz) : x(nx), y(ny), z(nz) {}
};
struct cudaDeviceProp {
  char name[256];
  int major;
  int minor;
};

/// What the stand-in did and what it is to do.
struct FakeCudart {
  int devices = 1;
  int major = 9;
  std::string fail_call;                      ///< the call that fails ...
  int fail_at = 1;                            ///< ... the n-th time it is made ...
  cudaError_t fail_with = cudaSuccess;        ///< ... in this way
  cudaError_t pending = cudaSuccess;          ///< a kernel's fault: every later call returns it
  cudaError_t fault_of_launch = cudaSuccess;  ///< what a launch leaves pending
  std::map<std::string, int> calls;
  std::int64_t live_buffers = 0;
  std::int64_t live_streams = 0;

  static FakeCudart& get();
  cudaError_t made(const char* call);
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMalloc(void** p, std::size_t bytes);
cudaError_t cudaFree(void* p);
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream);
const char* cudaGetErrorString(cudaError_t error);
