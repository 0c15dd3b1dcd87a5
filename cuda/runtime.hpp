#pragma once

#include "cuda/simt/counters.hpp"
#include "cuda/simt/options.hpp"

#include <cstddef>
#include <memory>

namespace kda::cuda {

/// A kernel in its two compiled forms. Both take one struct of parameters.
struct KernelForms {
  const char* name;
  void (*cpu)(void* params);  ///< body of one thread, for the executor
  const void* gpu;            ///< symbol for cudaLaunchKernel; nullptr without device code
};

struct LaunchShape {
  simt::Dim3 grid;
  simt::Dim3 block;
  std::size_t shared_bytes = 0;
};

/// The only way from here to a CUDA runtime, so that tests can stand in its place. All calls go to
/// one stream in order, allocate nothing and wait for nothing; they can be captured in a graph.
class Runtime {
 public:
  Runtime() = default;
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The host bytes must stay as they are until the stream has passed this point.
  virtual void copy_to_device(void* device, const void* host, std::size_t bytes) = 0;

  /// `params` are copied before the call returns. Throws kCudaRuntime; kDeviceLost, possibly for a
  /// launch before; on the CPU kExecutorFault.
  virtual void launch(const KernelForms& kernel, const LaunchShape& shape, void* params) = 0;
};

/// A runtime with memory of its own, for callers that have none: the harness and the tests.
class Device : public Runtime {
 public:
  /// Filled with 0xFF (NaN); released with this object. `name` appears in reports. Throws
  /// kOutOfMemory.
  [[nodiscard]] virtual std::byte* allocate(const char* name, std::size_t bytes) = 0;
  /// Waits for the stream.
  virtual void copy_to_host(void* host, const void* device, std::size_t bytes) = 0;
};

/// The CPU executor. Every launch is judged; kernels touch buffers of `allocate` only.
[[nodiscard]] std::unique_ptr<Device> open_executor(const simt::Options& options,
                                                    simt::Counters* counters = nullptr);

/// The first GPU. Throws kDeviceUnavailable with the reason when there is none or this program has
/// no device code, kArchitectureUnsupported below compute capability 8.0, kCudaRuntime otherwise.
[[nodiscard]] std::unique_ptr<Device> open_gpu();

}  // namespace kda::cuda
