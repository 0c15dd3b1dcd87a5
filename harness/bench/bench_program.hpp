#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

/// How the benchmarks are run.
struct BenchRun {
  std::filesystem::path program;  ///< a program of Google Benchmark
  std::string filter;             ///< glob on the names; empty = all
  bool quick = false;             ///< the small shapes, for a short time each
  int repetitions = 9;
  bool ours = true;  ///< takes --kda_quick
};

/// kdacheck_bench beside this program, or where the build puts it. Throws kPathNotFound.
[[nodiscard]] std::filesystem::path find_bench_program();

/// Folder with the compiler's logs of the kernels in this program's build.
[[nodiscard]] std::filesystem::path ptxas_folder();

/// A glob on names (`*`, `?`) as the regular expression that Google Benchmark takes. Names may end
/// in "/real_time" and the like, which the glob need not say.
[[nodiscard]] std::string glob_to_regex(const std::string& glob);

/// Runs the program and returns its JSON. Throws kBenchFileInvalid when it writes none.
[[nodiscard]] nlohmann::json run_benchmarks(const BenchRun& run);

/// Appends the repetitions of `more` to those in `all`; aggregates are left out. An `all` that is
/// null becomes `more`.
void append_repetitions(nlohmann::json& all, const nlohmann::json& more, int round);

}  // namespace kda::harness
