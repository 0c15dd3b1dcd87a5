#include "harness/bench/interleave.hpp"

#include "harness/implementation/implementation.hpp"
#include "reference/types/error.hpp"

#include <array>

#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;

bool is_program(const std::string& side) { return std::filesystem::is_regular_file(side); }

BenchRun side_run(const Interleave& wanted, const std::string& side) {
  BenchRun run = wanted.run;
  run.repetitions = 1;
  if (is_program(side)) {
    run.program = std::filesystem::absolute(side);
  } else {
    run.filter =
        "impl/" + find_implementation(side).name + "/" + (run.filter.empty() ? "*" : run.filter);
  }
  return run;
}

/// "impl/NAME/SHAPE" -> "impl/*/SHAPE".
void forget_implementation(json& file) {
  for (json& entry : file["benchmarks"]) {
    for (const char* key : {"name", "run_name"}) {
      if (!entry.contains(key) || !entry[key].is_string()) continue;
      auto name = entry[key].get<std::string>();
      const std::size_t begin = name.find('/');
      const std::size_t end = name.find('/', begin + 1);
      if (begin == std::string::npos || end == std::string::npos) continue;
      entry[key] = name.replace(begin + 1, end - begin - 1, "*");
    }
  }
}

}  // namespace

SpeedComparison interleave(const Interleave& wanted) {
  const bool programs = is_program(wanted.first);
  if (programs != is_program(wanted.second)) {
    throw Error(ErrorCode::kUsage,
                "--interleave: expected two programs or two implementations, got '" + wanted.first +
                    "' and '" + wanted.second + "'");
  }
  const BenchRun a_run = side_run(wanted, wanted.first);
  const BenchRun b_run = side_run(wanted, wanted.second);
  std::array<json, 3> files;  // A, B, A again
  const int rounds = wanted.run.repetitions;
  for (int round = 0; round < rounds; ++round) {
    // B is always in the middle; the two runs of A take turns in being the first.
    const std::array<std::size_t, 3> order =
        round % 2 == 0 ? std::array<std::size_t, 3>{0, 1, 2} : std::array<std::size_t, 3>{2, 1, 0};
    int place = 0;
    for (const std::size_t side : order) {
      wanted.progress(3 * round + ++place, 3 * rounds);
      append_repetitions(files[side], run_benchmarks(side == 1 ? b_run : a_run), round);
    }
  }
  if (!programs)
    for (json& file : files) forget_implementation(file);
  const BenchFile a = parse_bench_file(files[0], wanted.first, wanted.metric);
  const BenchFile b = parse_bench_file(files[1], wanted.second, wanted.metric);
  const BenchFile again = parse_bench_file(files[2], wanted.first, wanted.metric);
  return compare_speed(a, b, &again);
}

}  // namespace kda::harness
