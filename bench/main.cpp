// kdacheck_bench: all benchmarks in one program of Google Benchmark. `kdacheck bench` runs it.
// Beside Google Benchmark's options it takes --kda_quick: small shapes only.

#include "bench/registration.hpp"
#include "harness/bench/bench_file.hpp"
#include "harness/version.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

namespace kda::bench {
namespace {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void add_context(const Selection& selection) {
  const GpuContext gpu = gpu_context();
  benchmark::AddCustomContext("kdacheck_bench", harness::kBenchVersion);
  benchmark::AddCustomContext("kdacheck", std::string(harness::kVersion));
  benchmark::AddCustomContext("commit", KDA_COMMIT);
  benchmark::AddCustomContext("compiler", KDA_COMPILER);
  benchmark::AddCustomContext("build_flags", KDA_BUILD_FLAGS);
  benchmark::AddCustomContext("cpu", cpu_model());
  benchmark::AddCustomContext("gpu", gpu.gpu);
  benchmark::AddCustomContext("driver", gpu.driver);
  benchmark::AddCustomContext("quick", selection.quick ? "1" : "0");
}

/// Takes the options that are ours out of argv.
Selection take_selection(int& argc, char** argv) {
  Selection selection;
  const auto is_quick = [](const char* word) { return std::string_view(word) == "--kda_quick"; };
  char** end = std::remove_if(argv + 1, argv + argc, is_quick);
  selection.quick = end != argv + argc;
  argc = static_cast<int>(end - argv);
  return selection;
}

}  // namespace
}  // namespace kda::bench

int main(int argc, char** argv) {
  using namespace kda::bench;
  const Selection selection = take_selection(argc, argv);
  register_machine_rates(selection);
  register_implementations(selection);
  register_fast(selection);
  register_variance(selection);
  register_harness(selection);
  register_fit(selection);
  register_gpu(selection);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  add_context(selection);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
