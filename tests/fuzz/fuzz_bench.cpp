// Any bytes as a file of benchmarks or of counters, and that compared with itself.
#include "harness/bench/bench_compare.hpp"
#include "harness/bench/bench_file.hpp"
#include "harness/bench/counter_compare.hpp"
#include "tests/fuzz/fuzz_file.hpp"

#include <nlohmann/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kda::harness;
  const kda::tests::InputFile file(data, size);
  nlohmann::json parsed;
  try {
    parsed = read_json(file.path());
  } catch (const kda::Error&) {
    return 0;
  }
  kda::tests::expect_error_or_success([&] {
    const BenchFile bench = parse_bench_file(parsed, "fuzz", Metric::kRealTime);
    const SpeedComparison comparison = compare_speed(bench, bench);
    if (comparison.count(SpeedVerdict::kSlower) != 0) std::abort();  // than itself
  });
  return kda::tests::expect_error_or_success([&] {
    const CountComparison comparison = compare_counters(parsed, parsed, "fuzz", "fuzz");
    if (!comparison.lines.empty()) std::abort();  // differs from itself
  });
}
