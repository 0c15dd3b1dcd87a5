#include "bench/checked.hpp"

#include "harness/case/same_bits.hpp"
#include "harness/run/judge.hpp"
#include "harness/run/oracle.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>

namespace kda::bench {
namespace {

using harness::Case;
using harness::Implementation;
using harness::KdaCase;
using harness::same_bits;

double bytes_of(const KdaCase& kda_case, const std::string& name) {
  const auto found = kda_case.inputs.find(name);
  return found == kda_case.inputs.end() ? 0 : static_cast<double>(found->second.bytes());
}

/// FNV-1a over the bytes of all tensors.
std::uint64_t hash_of(const Outputs& outputs) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  const auto add = [&hash](const std::optional<Tensor>& tensor) {
    if (!tensor) return;
    for (std::int64_t i = 0; i < tensor->bytes(); ++i) {
      hash = (hash ^ static_cast<std::uint64_t>(tensor->data()[i])) * 0x100000001B3U;
    }
  };
  add(outputs.o);
  add(outputs.final_state);
  add(outputs.h);
  return hash;
}

Outputs answer(const Implementation& implementation, const Case& test_case) {
  return std::get<Outputs>(implementation.run(test_case, {}));
}

}  // namespace

LeastWork least_work(const KdaCase& kda_case, int state_bytes) {
  const Problem problem = kda_case.problem();
  const Semantics s = check(kda_case.contract, problem);
  LeastWork work;
  for (const Sequence& sequence : s.sequences)
    work.tokens += static_cast<double>(sequence.length());
  const auto state = static_cast<double>(s.HV * s.K * s.V);
  const double states = static_cast<double>(s.N()) * state * state_bytes;
  for (const char* input : {"q", "k", "v", "g", "beta", "A_log", "dt_bias"})
    work.bytes += bytes_of(kda_case, input);
  work.bytes += bytes_of(kda_case, "v");  // o
  if (problem.initial_state) work.bytes += states;
  if (s.final_state) work.bytes += states;
  work.flops = 6 * work.tokens * state;
  return work;
}

void report_work(benchmark::State& state, const LeastWork& work, const Rates& rates,
                 double seconds) {
  const double floor =
      std::max(work.bytes / rates.bytes_per_second, work.flops / rates.flops_per_second);
  state.counters["tokens/s"] = work.tokens / seconds;
  state.counters["min_bytes"] = work.bytes;
  state.counters["min_flops"] = work.flops;
  state.counters["floor_s"] = floor;
  state.counters["fraction"] = floor / seconds;
  if (floor > seconds) state.SetLabel("impossible");
}

std::string wrong_result(const Case& test_case, const Outputs& outputs, const std::string& judged) {
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  Case with_answer = test_case;
  with_answer.oracle = harness::oracle_for(kda_case, judged);
  with_answer.expected = harness::expected_from(test_case, with_answer.oracle);
  harness::Judging judging;
  if (outputs.o.dtype() == Dtype::kF64) judging.policy = &harness::find_policy("exact");
  for (const harness::Implementation& implementation : harness::all_implementations()) {
    if (implementation.name == judged) judging.formats = implementation.formats;
  }
  const harness::CaseResult result =
      harness::judge_result(with_answer, harness::by_name(outputs), std::nullopt, "", judging);
  if (result.verdict == harness::Verdict::kPassed) return {};
  return std::string(harness::name(result.verdict)) + ": " + result.code + " " + result.detail;
}

std::string judge_once(const std::string& key, const Outputs& outputs,
                       const std::function<std::string()>& judge) {
  static std::map<std::string, std::uint64_t> passed;
  const std::uint64_t hash = hash_of(outputs);
  if (const auto found = passed.find(key); found != passed.end() && found->second == hash)
    return {};
  std::string wrong = judge();
  if (wrong.empty()) passed[key] = hash;
  return wrong;
}

void guarded(benchmark::State& state, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

void time_implementation(benchmark::State& state, const Implementation& implementation,
                         const Case& test_case, const Rates& rates) {
  const Outputs judged = answer(implementation, test_case);
  const std::string wrong = judge_once(implementation.name + " " + test_case.name, judged, [&] {
    return wrong_result(test_case, judged, implementation.name);
  });
  if (!wrong.empty()) {
    state.SkipWithError(("wrong result: " + wrong).c_str());
    return;
  }
  Outputs last;
  const auto begin = std::chrono::steady_clock::now();
  while (state.KeepRunning()) last = answer(implementation, test_case);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
      static_cast<double>(state.iterations());
  if (!same_bits(judged, last)) {
    state.SkipWithError("wrong result: a timed call gave other bits than the judged one");
    return;
  }
  report_work(state, least_work(std::get<KdaCase>(test_case.inputs)), rates, seconds);
}

}  // namespace kda::bench
