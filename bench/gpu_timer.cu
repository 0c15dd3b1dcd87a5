#include "bench/gpu_rates.cuh"
#include "bench/gpu_timer.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <vector>

#include <cuda_runtime.h>

namespace kda::bench {
namespace {

void check(cudaError_t status, int line) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::kCudaRuntime,
              "gpu_timer.cu:" + std::to_string(line) + ": " + cudaGetErrorString(status));
}
#define KDA_CHECK(call) check((call), __LINE__)

/// Memory and one stream. While a graph is recorded only copies from the host and launches may
/// come.
class StreamDevice final : public cuda::Device {
 public:
  explicit StreamDevice(cudaStream_t stream) : stream_(stream) {}
  ~StreamDevice() override {
    for (void* p : buffers_) static_cast<void>(cudaFree(p));
  }
  std::byte* allocate(const char* name, std::size_t bytes) override {
    void* p = nullptr;
    if (cudaMalloc(&p, std::max<std::size_t>(bytes, 1)) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw Error(ErrorCode::kOutOfMemory,
                  std::string(name) + ": no " + std::to_string(bytes) + " bytes of device memory");
    }
    buffers_.push_back(p);
    KDA_CHECK(cudaMemsetAsync(p, 0xFF, bytes, stream_));
    return static_cast<std::byte*>(p);
  }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    KDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    KDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_));
    KDA_CHECK(cudaStreamSynchronize(stream_));
  }
  void launch(const cuda::KernelForms& kernel, const cuda::LaunchShape& shape,
              void* params) override {
    const dim3 grid(shape.grid.x, shape.grid.y, shape.grid.z);
    const dim3 block(shape.block.x, shape.block.y, shape.block.z);
    if (shape.shared_bytes > 48 * 1024) {
      KDA_CHECK(cudaFuncSetAttribute(kernel.gpu, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shape.shared_bytes)));
    }
    void* arguments[] = {params};
    KDA_CHECK(cudaLaunchKernel(kernel.gpu, grid, block, arguments, shape.shared_bytes, stream_));
  }

 private:
  cudaStream_t stream_;
  std::vector<void*> buffers_;
};

class CudaTimer final : public GpuTimer {
 public:
  CudaTimer() {
    static_cast<void>(cuda::open_gpu());  // says why not
    KDA_CHECK(cudaGetDeviceProperties(&properties_, 0));
    KDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    KDA_CHECK(cudaEventCreate(&begin_));
    KDA_CHECK(cudaEventCreate(&end_));
    release();
  }
  ~CudaTimer() override {
    drop_graph();
    device_.reset();
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  cuda::Device& device() override { return *device_; }
  void release() override {
    drop_graph();
    device_ = std::make_unique<StreamDevice>(stream_);
  }
  void record(const std::function<void()>& calls) override {
    drop_graph();
    KDA_CHECK(cudaStreamSynchronize(stream_));
    KDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    calls();
    cudaGraph_t graph = nullptr;
    KDA_CHECK(cudaStreamEndCapture(stream_, &graph));
    KDA_CHECK(cudaGraphInstantiate(&graph_, graph, 0));
    KDA_CHECK(cudaGraphDestroy(graph));
    KDA_CHECK(cudaGraphUpload(graph_, stream_));
  }
  double seconds() override {
    return between_events([this] { KDA_CHECK(cudaGraphLaunch(graph_, stream_)); });
  }
  std::size_t l2_bytes() const override {
    return static_cast<std::size_t>(properties_.l2CacheSize);
  }
  std::string name() const override { return properties_.name; }
  std::string driver() const override {
    int version = 0;
    static_cast<void>(cudaDriverGetVersion(&version));
    return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  const GpuRates& rates() override {
    if (rates_.bytes_per_second == 0) {
      rates_ = {copy_rate(), arithmetic_rate(&fma_kernel, 2.0),
                arithmetic_rate(&mma_kernel, 2.0 * 16 * 8 * 16 / 32)};
    }
    return rates_;
  }

 private:
  void drop_graph() {
    if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(graph_));
    graph_ = nullptr;
  }

  template <class Work>
  double between_events(Work work) {
    KDA_CHECK(cudaEventRecord(begin_, stream_));
    work();
    KDA_CHECK(cudaEventRecord(end_, stream_));
    KDA_CHECK(cudaEventSynchronize(end_));
    KDA_CHECK(cudaGetLastError());
    float milliseconds = 0;
    KDA_CHECK(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

  /// The least of ten runs after one to warm up.
  template <class Work>
  double least_seconds(Work work) {
    static_cast<void>(between_events(work));
    double least = between_events(work);
    for (int i = 1; i < 10; ++i) least = std::min(least, between_events(work));
    return least;
  }

  double copy_rate() {
    const std::size_t bytes = std::max<std::size_t>(16 * l2_bytes(), std::size_t{512} << 20);
    StreamDevice memory(stream_);
    const auto* from = reinterpret_cast<const uint4*>(memory.allocate("copy source", bytes));
    auto* to = reinterpret_cast<uint4*>(memory.allocate("copy target", bytes));
    const int blocks = 16 * properties_.multiProcessorCount;
    const double seconds = least_seconds(
        [&] { copy_kernel<<<blocks, 512, 0, stream_>>>(from, to, bytes / sizeof(uint4)); });
    return 2.0 * static_cast<double>(bytes) / seconds;
  }

  /// `flops` are those of a thread and chain a round.
  double arithmetic_rate(void (*kernel)(float*, int), double flops) {
    constexpr int kRounds = 20000;
    constexpr int kThreads = 256;
    StreamDevice memory(stream_);
    auto* sink = reinterpret_cast<float*>(memory.allocate("sink", sizeof(float)));
    const int blocks = 8 * properties_.multiProcessorCount;
    const double seconds =
        least_seconds([&] { kernel<<<blocks, kThreads, 0, stream_>>>(sink, kRounds); });
    return flops * kChains * kRounds * kThreads * blocks / seconds;
  }

  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  std::unique_ptr<StreamDevice> device_;
  GpuRates rates_;
};

}  // namespace

std::unique_ptr<GpuTimer> open_gpu_timer() { return std::make_unique<CudaTimer>(); }

}  // namespace kda::bench
