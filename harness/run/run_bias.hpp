#pragma once

#include "harness/run/judge.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kda::harness {

/// Which way the errors of an implementation lean, over the cases of a run: below 0 towards zero,
/// as truncated results do. One case cannot tell that from a state with a gain error, whose sign is
/// that of all its rows; over cases that sign is random.
struct RunBias {
  std::string implementation;
  std::int64_t cases = 0;  ///< passed under `derived` with at least 16 independent rows of `o`
  double mean = 0;         ///< over cases, of the mean of z sign(exact) over `o`
  double t = 0;            ///< Student's t of that mean
  bool failed = false;     ///< |mean| > 0.15 and |t| > 6, over at least 8 cases
};

/// One for each implementation with such cases, in the order in which they first appear.
[[nodiscard]] std::vector<RunBias> run_biases(const std::vector<CaseResult>& results);

/// "errors of o lean towards 0 by 0.45 sigma ...".
[[nodiscard]] std::string to_text(const RunBias& bias);

}  // namespace kda::harness
