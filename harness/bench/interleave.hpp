#pragma once

#include "harness/bench/bench_compare.hpp"
#include "harness/bench/bench_program.hpp"

#include <functional>
#include <string>

namespace kda::harness {

/// Two sides that are run in turn: programs of Google Benchmark, or implementations that
/// kdacheck_bench knows by name.
struct Interleave {
  std::string first;
  std::string second;
  BenchRun run;  ///< `repetitions` are rounds here; `program` is that of implementations
  Metric metric = Metric::kRealTime;
  /// Told before every run: its number from 1, and how many there are.
  std::function<void(int, int)> progress = [](int, int) {};
};

/// Rounds of A B A, one repetition each: the two runs of A give the band that equal programs show.
/// Lines of two implementations are named "impl/*/SHAPE". Throws kImplementationUnknown for what is
/// neither a file nor an implementation, kUsage for one of each, and what run_benchmarks throws.
[[nodiscard]] SpeedComparison interleave(const Interleave& wanted);

}  // namespace kda::harness
