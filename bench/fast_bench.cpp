// fast/ISA and fma/ISA: the fast form on T=2048, H=8, K=V=128 (bf16 q, k, v, f32 gates), one
// thread.
//
//   ops/s     4 per state element and token: decay, prediction, write, read
//   fma/s     f64 multiply-adds per second of the same instruction set, measured in this run by the
//             loop of fma_rate.cpp
//   busy      ops/s of the fastest head over the fastest run of the loop before and after: both
//   take
//             some milliseconds, and other work on the machine only ever takes away from either.
//             The recurrence token by token needs 4 instructions for these 4 operations and would
//             reach 1 with all units busy; the fast form, four tokens at a time, needs 3.25.

#include "bench/fma_rate.hpp"
#include "bench/machine.hpp"
#include "bench/random_call.hpp"
#include "bench/registration.hpp"
#include "reference/fast.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>

#include <benchmark/benchmark.h>

namespace kda::bench {
namespace {

using reference::InstructionSet;

constexpr std::int64_t kTokens = 2048;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kHeadDim = 128;
constexpr double kOperations = 4.0 * kTokens * kHeads * kHeadDim * kHeadDim;

const RandomCall& inputs() {
  static const RandomCall call(kTokens, kHeads);
  return call;
}

void count_operations(benchmark::State& state) {
  state.counters["ops/s"] = benchmark::Counter(
      kOperations * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void fma_bench(benchmark::State& state, InstructionSet set) {
  double best = 0;
  while (state.KeepRunning()) best = std::max(best, fma_rate(set));
  state.counters["fma/s"] = best;
}

/// Head by head, as a comparison larger than the memory uses it.
void fast_bench(benchmark::State& state, InstructionSet set) {
  const RandomCall& in = inputs();
  const reference::FastOptions options{.threads = 1, .instructions = set};
  double peak = fma_rate(set);
  double shortest = std::numeric_limits<double>::infinity();
  while (state.KeepRunning()) {
    std::clock_t start = std::clock();
    reference::fast_by_head(in.problem, in.semantics, options,
                            [&](const reference::HeadResult& head) {
                              benchmark::DoNotOptimize(head.o.data());
                              shortest = std::min(shortest, seconds_since(start));
                              start = std::clock();
                            });
  }
  peak = std::max(peak, fma_rate(set));
  count_operations(state);
  state.counters["fma/s"] = peak;
  state.counters["busy"] = kOperations / kHeads / shortest / peak;
}

}  // namespace

void register_fast(const Selection& selection) {
  for (const InstructionSet set : reference::available_instruction_sets()) {
    const std::string suffix = "/" + std::string(reference::name(set));
    benchmark::RegisterBenchmark(("fma" + suffix).c_str(), fma_bench, set)
        ->Unit(benchmark::kMillisecond);
    auto* fast = benchmark::RegisterBenchmark(("fast" + suffix).c_str(), fast_bench, set)
                     ->Unit(benchmark::kMillisecond);
    if (!selection.quick) fast->MinTime(2);  // seconds: many heads, for one to be undisturbed
  }
}

}  // namespace kda::bench
