#include "bench/machine.hpp"
#include "bench/registration.hpp"

// rate/cpu: the rates that floors are computed from, as counters of one line.

namespace kda::bench {
namespace {

void cpu_rates(benchmark::State& state) {
  const Rates& rates = machine_rates();
  while (state.KeepRunning())
    benchmark::DoNotOptimize(fma_rate(reference::InstructionSet::kBaseline));
  state.counters["bytes/s"] = rates.bytes_per_second;
  state.counters["flops/s"] = rates.flops_per_second;
}

}  // namespace

void register_machine_rates(const Selection&) {
  benchmark::RegisterBenchmark("rate/cpu", cpu_rates)->Unit(benchmark::kMillisecond)->UseRealTime();
}

}  // namespace kda::bench
