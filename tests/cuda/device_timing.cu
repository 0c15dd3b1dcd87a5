#include "cuda/prefill.hpp"
#include "cuda/recurrent.hpp"
#include "reference/types/error.hpp"
#include "tests/cuda/device_timing.hpp"

#include <algorithm>
#include <numeric>

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
    if (shape.shared_bytes > 48 * 1024) {
      check(cudaFuncSetAttribute(kernel.gpu, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shape.shared_bytes)),
            __LINE__);
    }
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

/// Numbers in [low, high), the same 2^16 again and again.
TensorView numbers(Device& device, const Shape& shape, double low, double high) {
  constexpr std::size_t kPeriod = 1U << 16;
  std::vector<std::uint16_t> host(kPeriod);
  std::uint64_t state = 1;
  for (std::uint16_t& x : host) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double unit = static_cast<double>(state >> 11) * 0x1p-53;
    x = to_bf16(static_cast<float>(low + (high - low) * unit)).bits;
  }
  const TensorView view = zeros(device, Dtype::kBf16, shape);
  auto* to = const_cast<std::byte*>(view.data);
  const auto bytes = static_cast<std::size_t>(num_elements(shape) * 2);
  std::size_t done = std::min(bytes, kPeriod * 2);
  check(cudaMemcpy(to, host.data(), done, cudaMemcpyHostToDevice), __LINE__);
  for (; done < bytes; done += std::min(done, bytes - done)) {
    check(cudaMemcpy(to + done, to, std::min(done, bytes - done), cudaMemcpyDeviceToDevice),
          __LINE__);
  }
  return view;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// `lens` packed as one batch row, or B rows of T tokens where it is empty.
PrefillTime time_one(const std::string& what, std::int64_t B, std::int64_t T, std::int64_t H,
                     const std::vector<std::int64_t>& lens) {
  constexpr std::int64_t kDim = 128;
  constexpr int kRuns = 15;
  const auto device = open_gpu();
  PrefillArgs args;
  Problem& p = args.problem;
  std::vector<std::int64_t> bounds(lens.size() + 1, 0);
  std::partial_sum(lens.begin(), lens.end(), bounds.begin() + 1);
  const std::int64_t N = lens.empty() ? B : static_cast<std::int64_t>(lens.size());
  if (!lens.empty()) {
    B = 1;
    T = bounds.back();
    p.cu_seqlens =
        TensorView{reinterpret_cast<const std::byte*>(bounds.data()), Dtype::kI64, {N + 1}, {1}};
  }
  p.q = numbers(*device, {B, T, H, kDim}, -1, 1);
  p.k = numbers(*device, {B, T, H, kDim}, -1, 1);
  p.v = numbers(*device, {B, T, H, kDim}, -1, 1);
  p.g = numbers(*device, {B, T, H, kDim}, -0.1, 0);
  p.beta = numbers(*device, {B, T, H}, 0, 1);
  p.use_qk_l2norm_in_kernel = true;
  p.output_final_state = true;
  args.o = output(zeros(*device, Dtype::kBf16, {B, T, H, kDim}));
  args.final_state = output(zeros(*device, Dtype::kF32, {N, H, kDim, kDim}));
  args.workspace_bytes = plan_prefill(args).workspace.bytes;
  args.workspace = device->allocate("workspace", args.workspace_bytes);
  const TensorView flush = zeros(*device, Dtype::kF32, {std::int64_t{64} << 20});
  std::vector<double> totals;
  std::vector<double> factors;
  for (int i = 0; i < kRuns; ++i) {
    check(cudaMemset(const_cast<std::byte*>(flush.data), i, std::size_t{256} << 20), __LINE__);
    TimedRuntime runtime;
    static_cast<void>(prefill(args, runtime));
    totals.push_back(
        std::accumulate(runtime.microseconds.begin(), runtime.microseconds.end(), 0.0));
    double first = 0;  // the two kernels take turns
    for (std::size_t j = 0; j < runtime.microseconds.size(); j += 2) {
      first += runtime.microseconds[j];
    }
    factors.push_back(first);
  }
  const double total = median(totals);
  const double bytes = static_cast<double>(B * T * H) * (5 * kDim * 2 + 2) +
                       static_cast<double>(N * H * kDim * kDim) * 4;
  return {what, total, median(factors), bytes / total * 1e6};
}

std::string shape_name(std::int64_t B, std::int64_t T, std::int64_t H) {
  return "prefill " + std::to_string(B) + " x " + std::to_string(T) + " H=" + std::to_string(H);
}

}  // namespace

std::vector<PrefillTime> time_prefill() {
  std::vector<PrefillTime> times;
  for (const std::int64_t H : {64, 96}) {
    times.push_back(time_one(shape_name(1, 8192, H), 1, 8192, H, {}));
    times.push_back(time_one("prefill 6 lengths, 8192 in all, H=" + std::to_string(H), 1, 0, H,
                             {1300, 547, 2048, 963, 271, 3063}));
    times.push_back(time_one(shape_name(8, 1024, H), 1, 0, H, std::vector<std::int64_t>(8, 1024)));
  }
  for (const std::int64_t B : {1, 2}) {
    for (std::int64_t T = 512; T <= 16384; T *= 2) {
      if (B == 1 && T == 8192) continue;  // is there already
      times.push_back(time_one(shape_name(B, T, 64), B, T, 64, {}));
    }
  }
  return times;
}

std::vector<DecodeTime> time_decoding() {
  std::vector<DecodeTime> times;
  for (const Dtype state : {Dtype::kF32, Dtype::kBf16}) {
    for (const std::int64_t N : {1, 4, 32, 128}) times.push_back(time_one(N, state));
  }
  return times;
}

}  // namespace kda::cuda
