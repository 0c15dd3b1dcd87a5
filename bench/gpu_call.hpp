#pragma once

#include "bench/checked.hpp"
#include "bench/gpu_timer.hpp"
#include "harness/case/case.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kda::bench {

/// One set of device tensors of a case, and the call on them.
class GpuCall {
 public:
  GpuCall() = default;
  virtual ~GpuCall() = default;
  GpuCall(const GpuCall&) = delete;
  GpuCall& operator=(const GpuCall&) = delete;

  virtual void run(cuda::Device& device) = 0;
  /// States as they lie on the device, bf16 or f32.
  [[nodiscard]] virtual Outputs fetch(cuda::Device& device) = 0;
};

/// A kernel that can be timed: makes a call of a case, with states of a dtype.
struct GpuKernel {
  std::string name;          ///< "cuda-recurrent"
  bool matrix_unit = false;  ///< computes on tensor cores
  std::function<std::unique_ptr<GpuCall>(const harness::KdaCase&, Dtype state, cuda::Device&)> call;
};

[[nodiscard]] GpuKernel recurrent_kernel();
[[nodiscard]] GpuKernel prefill_kernel();

/// Times a kernel on a case: judges one call, then records as many calls on
/// tensors of their own as fill the L2 twice, warms up, and times all of them
/// an iteration. The last must have left the judged bits. Ends in an error for
/// a wrong result.
void time_kernel(benchmark::State& state, GpuTimer& timer, const GpuKernel& kernel,
                 const harness::Case& test_case, Dtype state_dtype);

}  // namespace kda::bench
