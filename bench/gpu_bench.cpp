#include "bench/gpu_call.hpp"
#include "bench/registration.hpp"
#include "harness/case/case_line.hpp"
#include "reference/types/error.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

// gpu/KERNEL/SHAPE: kernels alone, by CUDA events, on the shapes of public reports. Without a GPU
// every line says why it is skipped.

namespace kda::bench {
namespace {

/// The GPU of this process, or why there is none.
struct Gpu {
  std::unique_ptr<GpuTimer> timer;
  std::string absent;
  std::string name;
  std::string driver;

  Gpu() {
    try {
      timer = open_gpu_timer();
      name = timer->name();
      driver = timer->driver();
    } catch (const Error& error) {
      absent = error.message();
      name = driver = "none: " + absent;
    }
  }
  static Gpu& get() {
    static Gpu gpu;
    return gpu;
  }
};

struct Shape {
  std::string name;
  std::string line;
  Dtype state = Dtype::kF32;
  bool quick = false;
};

constexpr const char* kFused = " gate=bound safe_gate=1 l2norm=1 beta_sigmoid=1 final_state=1";

std::vector<Shape> decode_shapes() {
  std::vector<Shape> shapes;
  for (const int heads : {64, 96}) {
    for (const int n : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {
      for (const Dtype state : {Dtype::kF32, Dtype::kBf16}) {
        const std::string extents = " B=" + std::to_string(n) + " T=1 H=" + std::to_string(heads);
        shapes.push_back({"decode_N" + std::to_string(n) + "_H" + std::to_string(heads) + "_" +
                              std::string(kda::name(state)),
                          "op=recurrent_kda" + extents + kFused + " initial_state=1", state,
                          heads == 64 && (n == 1 || n == 32)});
      }
    }
  }
  return shapes;
}

/// `op` is what the kernel serves of the two names that a whole sequence goes by.
std::vector<Shape> sequence_shapes(const std::string& op) {
  std::vector<Shape> shapes;
  const auto add = [&](const std::string& shape_name, const std::string& extents, bool quick) {
    shapes.push_back({shape_name, "op=" + op + " " + extents + kFused, Dtype::kF32, quick});
  };
  for (const char* heads : {"64", "96"}) {
    const std::string h = std::string(" H=") + heads;
    const std::string suffix = std::string("_H") + heads;
    add("T8192" + suffix, "T=8192" + h, std::string(heads) == "64");
    add("mixed" + suffix, "lens=1300,547,2048,963,271,3063" + h, false);
    add("8x1024" + suffix, "lens=1024,1024,1024,1024,1024,1024,1024,1024" + h, false);
  }
  for (const int batch : {1, 2}) {
    for (const int tokens : {512, 1024, 2048, 4096, 8192, 16384}) {
      if (batch == 1 && tokens == 8192) continue;  // is there already
      const std::string b = std::to_string(batch);
      const std::string t = std::to_string(tokens);
      add("B" + b + "_T" + t + "_H64", "B=" + b + " T=" + t + " H=64", batch == 1 && tokens == 512);
    }
  }
  return shapes;
}

/// Only the latest is kept: the largest takes gigabytes.
const harness::Case& latest_case(const Shape& shape) {
  static harness::Case latest;
  if (latest.name != shape.name) {
    latest = harness::make_case(harness::parse_case_line(shape.line));
    latest.name = shape.name;
  }
  return latest;
}

/// Passes over all sets of tensors in a repetition. Fixed, since every pass takes as many calls as
/// fill the L2 twice.
constexpr int kPasses = 30;

void add_shapes(const GpuKernel& kernel, const std::vector<Shape>& shapes,
                const Selection& selection) {
  for (const Shape& shape : shapes) {
    if (selection.quick && !shape.quick) continue;
    const auto run = [kernel, shape](benchmark::State& state) {
      Gpu& gpu = Gpu::get();
      if (!gpu.timer) {
        state.SkipWithError(("skipped: " + gpu.absent).c_str());
        return;
      }
      guarded(state,
              [&] { time_kernel(state, *gpu.timer, kernel, latest_case(shape), shape.state); });
    };
    benchmark::RegisterBenchmark(("gpu/" + kernel.name + "/" + shape.name).c_str(), run)
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(kPasses)
        ->UseManualTime();
  }
}

void gpu_rates(benchmark::State& state) {
  Gpu& gpu = Gpu::get();
  if (!gpu.timer) {
    state.SkipWithError(("skipped: " + gpu.absent).c_str());
    return;
  }
  const GpuRates& rates = gpu.timer->rates();
  while (state.KeepRunning()) benchmark::DoNotOptimize(gpu.timer->l2_bytes());
  state.counters["bytes/s"] = rates.bytes_per_second;
  state.counters["flops/s"] = rates.fma_flops;
  state.counters["mma_flops/s"] = rates.mma_flops;
}

}  // namespace

void register_gpu(const Selection& selection) {
  benchmark::RegisterBenchmark("rate/gpu", gpu_rates);
  add_shapes(recurrent_kernel(), decode_shapes(), selection);
  add_shapes(recurrent_kernel(), sequence_shapes("chunk_kda"), selection);
  add_shapes(prefill_kernel(), sequence_shapes("kda_prefill"), selection);
}

GpuContext gpu_context() {
  const Gpu& gpu = Gpu::get();
  return {gpu.name.c_str(), gpu.driver.c_str()};
}

}  // namespace kda::bench
