#pragma once

namespace kda::bench {

/// Which benchmarks are wanted.
struct Selection {
  bool quick = false;  ///< small shapes only
};

/// Each adds the benchmarks of one file; the order is that of the report.
void register_machine_rates(const Selection& selection);
void register_implementations(const Selection& selection);
void register_fast(const Selection& selection);
void register_variance(const Selection& selection);
void register_harness(const Selection& selection);
void register_fit(const Selection& selection);
void register_gpu(const Selection& selection);

/// For the context of a report: the GPU and its driver, or "none: REASON".
struct GpuContext {
  const char* gpu;
  const char* driver;
};
[[nodiscard]] GpuContext gpu_context();

}  // namespace kda::bench
