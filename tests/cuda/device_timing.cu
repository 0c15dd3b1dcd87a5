#include "cuda/recurrent.hpp"
#include "reference/types/error.hpp"
#include "tests/cuda/device_timing.hpp"

#include <algorithm>

#include <cuda_runtime.h>

namespace kda::cuda {
namespace {

void check(cudaError_t status, int line) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::kCudaRuntime,
              "device_timing.cu:" + std::to_string(line) + ": " + cudaGetErrorString(status));
}

/// Launches on the default stream between two events.
class TimedRuntime final : public Runtime {
 public:
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), __LINE__);
  }
  void launch(const KernelForms& kernel, const LaunchShape& shape, void* params) override {
    const dim3 grid(shape.grid.x, shape.grid.y, shape.grid.z);
    const dim3 block(shape.block.x, shape.block.y, shape.block.z);
    void* arguments[] = {params};
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    check(cudaEventCreate(&begin), __LINE__);
    check(cudaEventCreate(&end), __LINE__);
    check(cudaEventRecord(begin), __LINE__);
    check(cudaLaunchKernel(kernel.gpu, grid, block, arguments, shape.shared_bytes, nullptr),
          __LINE__);
    check(cudaEventRecord(end), __LINE__);
    check(cudaEventSynchronize(end), __LINE__);
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), __LINE__);
    microseconds.push_back(1e3 * milliseconds);
    check(cudaEventDestroy(begin), __LINE__);
    check(cudaEventDestroy(end), __LINE__);
  }
  std::vector<double> microseconds;
};

/// A dense tensor of zeros in device memory, kept by `device`.
TensorView zeros(Device& device, Dtype dtype, const Shape& shape) {
  const auto bytes = static_cast<std::size_t>(num_elements(shape) * size_of(dtype));
  std::byte* data = device.allocate("timing", bytes);
  check(cudaMemset(data, 0, bytes), __LINE__);
  return {data, dtype, shape, dense_strides(shape)};
}

OutputView output(const TensorView& x) {
  return {const_cast<std::byte*>(x.data), x.dtype, x.shape, x.strides};
}

DecodeTime time_one(std::int64_t N, Dtype state) {
  constexpr std::int64_t kHeads = 64;
  constexpr std::int64_t kDim = 128;
  constexpr int kRuns = 30;
  const auto device = open_gpu();
  RecurrentArgs args;
  Problem& p = args.problem;
  p.q = p.k = p.v = p.g = zeros(*device, Dtype::kBf16, {N, 1, kHeads, kDim});
  p.beta = zeros(*device, Dtype::kBf16, {N, 1, kHeads});
  args.o = output(zeros(*device, Dtype::kBf16, {N, 1, kHeads, kDim}));
  args.pool = output(zeros(*device, state, {N, kHeads, kDim, kDim}));
  // Larger than the L2 cache: between two launches everything in it is replaced.
  const TensorView flush = zeros(*device, Dtype::kF32, {std::int64_t{64} << 20});
  check(cudaDeviceSynchronize(), __LINE__);
  TimedRuntime runtime;
  for (int i = 0; i < kRuns; ++i) {
    check(cudaMemset(const_cast<std::byte*>(flush.data), i, std::size_t{256} << 20), __LINE__);
    static_cast<void>(recurrent(args, runtime));
  }
  std::sort(runtime.microseconds.begin(), runtime.microseconds.end());
  const double median = runtime.microseconds[kRuns / 2];
  const double bytes = 2.0 * static_cast<double>(num_elements(args.pool->shape) * size_of(state));
  return {"decode N=" + std::to_string(N) + " HV=64 state " + name(state), median,
          bytes / median * 1e-3};
}

}  // namespace

std::vector<DecodeTime> time_decoding() {
  std::vector<DecodeTime> times;
  for (const Dtype state : {Dtype::kF32, Dtype::kBf16}) {
    for (const std::int64_t N : {1, 4, 32, 128}) times.push_back(time_one(N, state));
  }
  return times;
}

}  // namespace kda::cuda
