#include "bench/registration.hpp"
#include "harness/case/case_line.hpp"
#include "harness/compare/compare.hpp"
#include "harness/compare/formats.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/run/case_answers.hpp"
#include "harness/run/oracle.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/contract.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>
#include <unistd.h>

// fixture/...: writing and reading a case of 9 MB. compare/...: judging tensors that are there.

namespace kda::bench {
namespace {

using harness::Case;
using harness::KdaCase;

constexpr const char* kLine =
    "op=kda_prefill T=2048 H=4 gate=bound safe_gate=1 l2norm=1 beta_sigmoid=1 final_state=1";

/// A case with the answers of the reference and of a peer, which differ by roundings.
struct Judged {
  Case made = harness::make_case(harness::parse_case_line(kLine));
  const KdaCase& kda_case = std::get<KdaCase>(made.inputs);
  Semantics semantics = check(kda_case.contract, kda_case.problem());
  std::map<std::string, Tensor> got =
      harness::by_name(reference::recurrent_f32(kda_case.problem(), semantics));

  Judged() {
    made.oracle = "kdacheck:fast";
    made.expected = harness::expected_from(made, "fast");
  }
  static const Judged& get() {
    static const Judged judged;
    return judged;
  }
};

/// A fixture that is gone with the process.
class FixtureFile {
 public:
  FixtureFile() { harness::write_fixture(path, Judged::get().made); }
  ~FixtureFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  FixtureFile(const FixtureFile&) = delete;
  FixtureFile& operator=(const FixtureFile&) = delete;
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("kdacheck_bench_" + std::to_string(getpid()) + ".h5");
};

void bytes_per_second(benchmark::State& state, double bytes) {
  state.counters["bytes/s"] = benchmark::Counter(bytes * static_cast<double>(state.iterations()),
                                                 benchmark::Counter::kIsRate);
}

void read_bench(benchmark::State& state) {
  static const FixtureFile file;
  while (state.KeepRunning()) benchmark::DoNotOptimize(harness::read_fixture(file.path));
  bytes_per_second(state, static_cast<double>(std::filesystem::file_size(file.path)));
}

void write_bench(benchmark::State& state) {
  static const FixtureFile file;
  while (state.KeepRunning()) harness::write_fixture(file.path, Judged::get().made);
  bytes_per_second(state, static_cast<double>(std::filesystem::file_size(file.path)));
}

void compare_bench(benchmark::State& state, const harness::Policy& policy) {
  const Judged& judged = Judged::get();
  double elements = 0;
  for (const auto& [name, tensor] : judged.got) elements += static_cast<double>(tensor.size());
  const harness::CaseDeviations deviations = harness::deviations_of(
      judged.kda_case, judged.semantics, harness::formats_of({}, judged.kda_case.problem()));
  harness::Standard standard{.expected = judged.made.expected->tensors, .policy = policy};
  standard.deviations = &deviations;
  while (state.KeepRunning())
    benchmark::DoNotOptimize(harness::compare(judged.semantics, standard, judged.got));
  state.counters["elements/s"] = benchmark::Counter(
      elements * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

}  // namespace

void register_harness(const Selection&) {
  const auto real_ms = [](benchmark::internal::Benchmark* b) {
    b->Unit(benchmark::kMillisecond)->UseRealTime();
  };
  real_ms(benchmark::RegisterBenchmark("fixture/read", read_bench));
  real_ms(benchmark::RegisterBenchmark("fixture/write", write_bench));
  for (const char* policy : {"derived", "fla"}) {
    real_ms(benchmark::RegisterBenchmark((std::string("compare/") + policy).c_str(), compare_bench,
                                         harness::find_policy(policy)));
  }
}

}  // namespace kda::bench
