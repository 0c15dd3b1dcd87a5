#pragma once

#include "harness/base/verdict.hpp"
#include "harness/run/judge.hpp"
#include "harness/run/known_failures.hpp"
#include "harness/run/run_bias.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kda::harness {

/// Which part of what a run was: what it takes to put parts together.
struct RunOrigin {
  std::int64_t shard_index = 1;  ///< counts from 1
  std::int64_t shard_count = 1;
  std::int64_t items = 0;  ///< files and case lines that were asked for, over all shards
  std::string inputs;      ///< SHA-256 over them: names below what was named, sizes, case lines
  /// Everything else that verdicts depend on, by option of `check`; what is not set is left out.
  std::map<std::string, std::string> options;

  [[nodiscard]] bool is_part() const noexcept { return shard_count > 1; }
  /// Whether this shard has the item with this place among all.
  [[nodiscard]] bool holds(std::int64_t item) const noexcept {
    return item % shard_count == shard_index - 1;
  }
};

/// What came of a run.
struct RunReport {
  RunOrigin origin;
  std::vector<std::string> asked;            ///< implementations named by --impl
  std::vector<KnownFailure> known_failures;  ///< with what the run made of them
  std::vector<CaseResult> results;           ///< in the order of the work list
  std::array<std::int64_t, kVerdictCount> counts{};
  std::int64_t cases = 0;                 ///< read and matched by the filter
  std::vector<std::string> input_errors;  ///< one line each: paths and case lines that are no input
  std::vector<std::string> halves;        ///< files beside the fixtures whose writer was killed
  std::vector<std::string> idle;   ///< implementations asked for by name that ran no case at all
  std::vector<std::string> notes;  ///< on known failures and on halves, one line each
  bool unexpected_pass = false;    ///< a known failure passed
  bool interrupted = false;
  std::string stopped;          ///< why the run ended before its last case, if not interrupted
  std::int64_t not_run = 0;     ///< cases that the end of the run left out, or not all of one
  std::vector<RunBias> biases;  ///< of implementations that `derived` judged
  double seconds = 0;

  [[nodiscard]] std::int64_t count(Verdict verdict) const {
    return counts[static_cast<std::size_t>(verdict)];
  }
  /// Pairs of case and implementation that were asked for, and cases that could not be read.
  [[nodiscard]] std::int64_t required() const { return static_cast<std::int64_t>(results.size()); }
  /// Those that were run and judged, known failures too.
  [[nodiscard]] std::int64_t compared() const;
  [[nodiscard]] std::int64_t failures() const;
  [[nodiscard]] Exit exit_status() const;

  /// Everything that follows from the results once all are there: counts, cases, biases, idle
  /// implementations, notes.
  void conclude();
};

}  // namespace kda::harness
