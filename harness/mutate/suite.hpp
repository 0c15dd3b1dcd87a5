#pragma once

#include "harness/case/case.hpp"

#include <filesystem>
#include <vector>

namespace kda::harness::mutate {

/// One case that mutants are run on.
struct SuiteCase {
  Case test_case;        ///< with expected values
  bool kernels = false;  ///< small enough for the executor under many schedules
  bool laws = false;     ///< the laws (run/laws.hpp) are checked on it too
};

/// Reads a list: one case a line, `#` starts a comment. A line is the name of a bundled fixture or
/// a case line in double quotes, then any of the words `kernels` and `laws`. Case lines get their
/// expected values from the reference.
/// Throws kPathNotFound, kCaseLineInvalid (file and line), and what reading a fixture throws.
[[nodiscard]] std::vector<SuiteCase> read_suite(const std::filesystem::path& file,
                                                const std::filesystem::path& fixtures);

}  // namespace kda::harness::mutate
