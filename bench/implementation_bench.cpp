#include "bench/checked.hpp"
#include "bench/machine.hpp"
#include "bench/registration.hpp"
#include "harness/case/case_line.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

// impl/NAME/SHAPE: every implementation on host memory. Shapes are those of public reports with
// fewer heads, since the references are there to be right.

namespace kda::bench {
namespace {

using harness::Case;
using harness::Implementation;

struct Shape {
  const char* name;
  const char* line;
  bool quick;
};

constexpr const char* kFused = " gate=bound safe_gate=1 l2norm=1 beta_sigmoid=1 ";
constexpr Shape kShapes[] = {
    {"decode_N16_H4", "op=recurrent_kda B=16 T=1 H=4 initial_state=1 final_state=1", true},
    {"T512_H2", "op=kda_prefill T=512 H=2 final_state=1", true},
    {"T2048_H4", "op=kda_prefill T=2048 H=4 final_state=1", false},
    {"T8192_H1", "op=kda_prefill T=8192 H=1 final_state=1", false},
    {"mixed_H1", "op=kda_prefill lens=1300,547,2048,963,271,3063 H=1 final_state=1", false},
    {"8x1024_H1", "op=kda_prefill lens=1024,1024,1024,1024,1024,1024,1024,1024 H=1 final_state=1",
     false},
};

/// Made when first asked for, then kept: repetitions come back to it.
const Case& case_of(const Shape& shape) {
  static std::map<std::string, std::unique_ptr<Case>> made;
  std::unique_ptr<Case>& kept = made[shape.name];
  if (!kept) {
    kept = std::make_unique<Case>(
        harness::make_case(harness::parse_case_line(std::string(shape.line) + kFused)));
  }
  return *kept;
}

/// An f32 register holds twice as many numbers as one of f64.
Rates rates_of(const Implementation& implementation) {
  Rates rates = machine_rates();
  if (implementation.name.starts_with("peer-")) rates.flops_per_second *= 2;
  return rates;
}

}  // namespace

void register_implementations(const Selection& selection) {
  for (const Implementation& implementation : harness::all_implementations()) {
    if (implementation.name.starts_with("cuda-")) continue;  // timed on a GPU, or not at all
    for (const Shape& shape : kShapes) {
      if (selection.quick && !shape.quick) continue;
      const harness::Op op = harness::parse_case_line(shape.line).op;
      if (std::ranges::find(implementation.ops, op) == implementation.ops.end()) continue;
      const std::string name = "impl/" + implementation.name + "/" + shape.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&implementation, &shape](benchmark::State& state) {
                                     guarded(state, [&] {
                                       time_implementation(state, implementation, case_of(shape),
                                                           rates_of(implementation));
                                     });
                                   })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace kda::bench
