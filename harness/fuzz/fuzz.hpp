#pragma once

#include "harness/fuzz/shrink.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/run/judge.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kda::harness {

struct FuzzOptions {
  double seconds = 60;         ///< time to draw and judge cases, and to shrink failures ...
  double shrink_seconds = 60;  ///< ... each of which may take this long, also after that time
  std::int64_t cases = 0;      ///< most cases; 0 = as many as the time allows
  std::uint64_t seed = 1;
  std::int64_t most_failures = 5;  ///< ends the search: more of them rarely say more
  Judging judging;
  std::filesystem::path folder = ".";  ///< where shrunken cases are written
};

/// One failure found, and what it was shrunk to.
struct FuzzFailure {
  std::string line;  ///< the case line as drawn
  Verdict verdict = Verdict::kFailed;
  std::string detail;
  Shrunk shrunk;
  std::filesystem::path file;  ///< fixture of the shrunken case
};

struct FuzzReport {
  std::int64_t cases = 0;        ///< drawn and judged
  std::int64_t mistrusted = 0;   ///< drawn and run, but beyond what the bound can judge
  std::int64_t unsupported = 0;  ///< drawn, but not served by the implementation, or not here
  std::size_t pairs = 0;         ///< pairs of options that stood in one case
  bool all_pairs = false;        ///< no further pair could be found
  bool interrupted = false;      ///< SIGINT ended the search
  std::vector<FuzzFailure> failures;
};

/// Draws cases (CaseDraw) until time, cases or failures are spent, judges the implementation on
/// each, shrinks every failure and writes it as a fixture with the reference's answer. It ends
/// after seconds + shrink_seconds and three calls of the implementation at most, since the last
/// failure may come with the end of the time. `progress` is called after each case. Throws
/// kFileUnwritable.
[[nodiscard]] FuzzReport fuzz(const Implementation& implementation, const FuzzOptions& options,
                              const std::function<void(const FuzzReport&)>& progress);

/// Writes a shrunken case as a fixture that `check` judges.
void write_shrunk(const std::filesystem::path& file, const KdaCase& kda_case,
                  const std::string& description);

}  // namespace kda::harness
