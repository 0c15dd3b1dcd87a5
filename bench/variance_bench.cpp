// variance/ISA: cost of the variance bound beside the exact recurrence on T=2048, H=4, K=V=128
// (bf16 q, k, v, f32 gates), one thread.
//
//   recurrence   processor time of reference::recurrent, best of the interleaved runs
//   ratio        processor time of the bound, exact values of its own included, over that; the
//                best runs of both, since other work on the machine only ever adds to either

#include "bench/random_call.hpp"
#include "bench/registration.hpp"
#include "reference/recurrent.hpp"
#include "reference/variance.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>

#include <benchmark/benchmark.h>

namespace kda::bench {
namespace {

constexpr std::int64_t kTokens = 2048;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kHeadDim = 128;

const RandomCall& inputs() {
  static const RandomCall call(kTokens, kHeads);
  return call;
}

void variance_bench(benchmark::State& state, reference::InstructionSet set) {
  const RandomCall& in = inputs();
  const reference::Formats formats = reference::default_formats(Dtype::kBf16, Dtype::kBf16);
  const reference::FastOptions options{.threads = 1, .instructions = set};
  double recurrence = std::numeric_limits<double>::infinity();
  double bound = recurrence;
  while (state.KeepRunning()) {
    std::clock_t start = std::clock();
    benchmark::DoNotOptimize(reference::recurrent(in.problem, in.semantics));
    recurrence = std::min(recurrence, seconds_since(start));
    start = std::clock();
    reference::deviations_by_head(in.problem, in.semantics, formats, options,
                                  [&](const reference::HeadDeviation& head) {
                                    benchmark::DoNotOptimize(head.o.data());
                                    bound = std::min(bound, kHeads * seconds_since(start));
                                    start = std::clock();
                                  });
  }
  constexpr double kUnits = 1e6 / (kTokens * kHeads);  // microseconds per token and head
  state.counters["recurrence_us"] = recurrence * kUnits;
  state.counters["bound_us"] = bound * kUnits;
  state.counters["ratio"] = bound / recurrence;
}

}  // namespace

void register_variance(const Selection& selection) {
  for (const reference::InstructionSet set : reference::available_instruction_sets()) {
    auto* bound =
        benchmark::RegisterBenchmark(("variance/" + std::string(reference::name(set))).c_str(),
                                     variance_bench, set)
            ->Unit(benchmark::kMillisecond);
    if (!selection.quick) bound->MinTime(2);  // seconds: many runs, for one to be undisturbed
  }
}

}  // namespace kda::bench
