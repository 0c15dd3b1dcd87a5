#pragma once

#include "harness/implementation/implementation.hpp"

#include <functional>
#include <string>

#include <benchmark/benchmark.h>

namespace kda::bench {

/// What a KDA call must move and compute at least, however it is done: every tensor once, and three
/// products with the state (by k, by q, and the write), 6 K V operations per token and value head.
struct LeastWork {
  double tokens = 0;
  double bytes = 0;
  double flops = 0;
};

/// `state_bytes` are those of one element of a state.
[[nodiscard]] LeastWork least_work(const harness::KdaCase& kda_case, int state_bytes = 4);

/// What a device does at most, as measured in this run.
struct Rates {
  double bytes_per_second = 0;
  double flops_per_second = 0;  ///< two for a multiply-add
};

/// Adds tokens/s, min_bytes, min_flops, floor_s and fraction for iterations of `seconds`; labels
/// the line "impossible" when it beat the floor.
void report_work(benchmark::State& state, const LeastWork& work, const Rates& rates,
                 double seconds);

/// Verdict on an answer to a case without expected values: empty, or why it is wrong. "o" and the
/// states are judged by the default policy against a reference that is not `judged`.
[[nodiscard]] std::string wrong_result(const harness::Case& test_case, const Outputs& outputs,
                                       const std::string& judged);

/// `judge` on outputs, once for all outputs with the same bits under the same key: Google Benchmark
/// calls a benchmark again and again, and a reference takes longer than what is timed.
[[nodiscard]] std::string judge_once(const std::string& key, const Outputs& outputs,
                                     const std::function<std::string()>& judge);

/// Runs `body`; what it throws ends the benchmark in an error, not the program.
void guarded(benchmark::State& state, const std::function<void()>& body);

/// Times an implementation on host memory, but only after its answer has been judged; the answer of
/// the last timed call must have the bits of the judged one. Either way out ends in an error.
void time_implementation(benchmark::State& state, const harness::Implementation& implementation,
                         const harness::Case& test_case, const Rates& rates);

}  // namespace kda::bench
