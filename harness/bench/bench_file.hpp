#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

/// Which of Google Benchmark's two times is meant. Benchmarks with manual time have it in both.
enum class Metric : std::uint8_t { kRealTime, kCpuTime };

/// One benchmark of a file, all repetitions together.
struct BenchLine {
  std::string name;
  std::vector<double> seconds;             ///< an iteration, one value a repetition
  std::map<std::string, double> counters;  ///< medians of the repetitions
  bool skipped = false;                    ///< not timed for want of something, as `problem` says
  bool failed = false;                     ///< the benchmark reported an error
  /// Why there are no times that can be used: an error, a time that is no positive number, a unit
  /// nobody knows. Empty when all is well.
  std::string problem;
};

/// A file of Google Benchmark's JSON.
struct BenchFile {
  std::string path;
  std::map<std::string, std::string> context;  ///< scalars, as text
  std::vector<BenchLine> lines;                ///< in the order of the file; names are unique

  [[nodiscard]] const BenchLine* find(const std::string& name) const;
  [[nodiscard]] std::string context_or(const std::string& key, const std::string& otherwise) const;
};

/// The version of kdacheck's additions to the context, under the key "kdacheck_bench".
inline constexpr const char* kBenchVersion = "1";

/// What a message says of a foreign value: itself, cut to 60 characters, or "an array". Nesting is
/// not printed: that recurses, and a file may be deeper than the stack.
[[nodiscard]] std::string brief(const nlohmann::json& value);

/// Throws kPathNotFound, and kBenchFileInvalid for what is not JSON.
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file);

/// Throws kBenchFileInvalid for JSON of another tool or of another version of kdacheck bench.
/// Files of Google Benchmark that kdacheck had no hand in are taken. What is wrong with single
/// lines is told in the lines.
[[nodiscard]] BenchFile parse_bench_file(const nlohmann::json& parsed, const std::string& path,
                                         Metric metric);

}  // namespace kda::harness
