#pragma once

#include "cuda/runtime.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace kda::bench {

/// What a GPU does at most, as measured in this run.
struct GpuRates {
  double bytes_per_second = 0;  ///< read and written by a copy far larger than the L2
  double fma_flops = 0;         ///< f32 multiply-adds of all threads
  double mma_flops = 0;         ///< mma.sync m16n8k16 bf16 into f32
};

/// Runs recorded calls on a device between two events.
class GpuTimer {
 public:
  GpuTimer() = default;
  virtual ~GpuTimer() = default;
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  /// Memory lives until release(). Calls outside record() run at once.
  [[nodiscard]] virtual cuda::Device& device() = 0;
  virtual void release() = 0;
  /// Keeps what `calls` launches (as a graph, so that the host's part costs nothing later). What
  /// the launches refer to must live until the next record() or release().
  virtual void record(const std::function<void()>& calls) = 0;
  /// Runs the recorded calls once; seconds between the events.
  [[nodiscard]] virtual double seconds() = 0;

  [[nodiscard]] virtual std::size_t l2_bytes() const = 0;
  [[nodiscard]] virtual const GpuRates& rates() = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string driver() const = 0;
};

/// The first GPU. Throws as cuda::open_gpu does: kDeviceUnavailable where there is none or no
/// device code.
[[nodiscard]] std::unique_ptr<GpuTimer> open_gpu_timer();

/// Stands in where there is no GPU, to rehearse: the CPU executor, with rates as large as can be,
/// and an L2 of `l2_bytes`. Its times say nothing of a GPU.
[[nodiscard]] std::unique_ptr<GpuTimer> open_rehearsal(std::size_t l2_bytes);

}  // namespace kda::bench
