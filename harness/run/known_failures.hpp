#pragma once

#include "harness/run/judge.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness {

/// One entry of a list of known failures, and what a run made of it. `implementation`, `test_case`
/// and `code` are globs.
struct KnownFailure {
  std::string implementation;
  std::string test_case;
  std::string code = "*";  ///< only failures with this code
  std::string reason;
  std::string expires;  ///< the last day it holds, "2027-01-31"
  bool expired = false;
  std::int64_t excused = 0;  ///< failures that it turned into kKnownFailure
  std::int64_t failed = 0;   ///< failures that it would have, had it not expired
  std::int64_t passed = 0;   ///< matching results that passed
};

/// Reads {"format": "kdacheck-known-failures", "version": 1, "known_failures": [{"implementation",
/// "case", "reason", "expires", "code" (optional)}]}. `today` as "2027-01-31".
/// Throws kKnownFailuresInvalid, naming entry and key, and kPathNotFound.
[[nodiscard]] std::vector<KnownFailure> read_known_failures(const std::filesystem::path& file,
                                                            std::string_view today);

/// Turns failures that an entry names into kKnownFailure, and counts in the entries. The first
/// entry that matches and has not expired counts.
void apply_known_failures(std::vector<KnownFailure>& entries, std::vector<CaseResult>& results);

/// What is wrong with a list after a run, one line an entry: expired, passes now, or matched
/// nothing.
struct KnownFailureNotes {
  std::vector<std::string> lines;
  /// An entry without wildcards passed: it has to go, and the run is no success until it does. An
  /// entry with wildcards is only named, since a filtered run may not see what fails.
  bool unexpected_pass = false;
};

[[nodiscard]] KnownFailureNotes notes_on(const std::vector<KnownFailure>& entries);

/// The date in UTC as "2027-01-31".
[[nodiscard]] std::string utc_date();

}  // namespace kda::harness
