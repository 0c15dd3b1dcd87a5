// variance/ISA: cost of the variance bound beside the exact recurrence on T=2048, H=4, K=V=128
// (bf16 q, k, v, f32 gates), one thread.
//
//   recurrence   processor time of reference::recurrent, best of the interleaved runs
//   ratio        processor time of the bound, exact values of its own included, over that; the
//                best runs of both, since other work on the machine only ever adds to either

#include "bench/registration.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/contract.hpp"
#include "reference/variance.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

namespace kda::bench {
namespace {

constexpr std::int64_t kTokens = 2048;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kHeadDim = 128;

Tensor random_tensor(Dtype dtype, Shape shape, double low, double high, std::uint64_t seed) {
  Tensor tensor(dtype, std::move(shape));
  std::uint64_t x = seed;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    tensor.store(i, low + (high - low) * static_cast<double>(x >> 11) * 0x1p-53);
  }
  return tensor;
}

struct Inputs {
  Shape shape{1, kTokens, kHeads, kHeadDim};
  Tensor q = random_tensor(Dtype::kBf16, shape, -0.15, 0.15, 1);
  Tensor k = random_tensor(Dtype::kBf16, shape, -0.15, 0.15, 2);
  Tensor v = random_tensor(Dtype::kBf16, shape, -2, 2, 3);
  Tensor g = random_tensor(Dtype::kF32, shape, -0.2, 0, 4);
  Tensor beta = random_tensor(Dtype::kF32, {1, kTokens, kHeads}, 0, 1, 5);
  Problem problem;
  Semantics semantics;

  Inputs() : problem(make_problem()), semantics(check(Contract::kKdaPrefill, problem)) {}

  static const Inputs& get() {
    static const Inputs inputs;
    return inputs;
  }

 private:
  [[nodiscard]] Problem make_problem() const {
    Problem p;
    p.q = q.view();
    p.k = k.view();
    p.v = v.view();
    p.g = g.view();
    p.beta = beta.view();
    p.output_final_state = true;
    return p;
  }
};

/// Processor time, which other work on the machine does not count into.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void variance_bench(benchmark::State& state, reference::InstructionSet set) {
  const Inputs& in = Inputs::get();
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
