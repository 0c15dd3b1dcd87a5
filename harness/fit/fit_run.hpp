#pragma once

#include "harness/base/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>

namespace kda::harness {

/// Where no context is given it does not limit anything.
inline constexpr std::int64_t kUnlimitedContext = std::int64_t{1} << 62;

/// `kdacheck fit`. Lengths in tokens.
struct FitCommand {
  std::string samples;                          ///< CSV, JSON, log or HDF5 fixture of op fit
  std::optional<std::int64_t> base_chunk_size;  ///< else the fixture's, if it has one
  std::optional<std::int64_t> prompt_len;       ///< asks for a schedule
  std::int64_t page_size = 64;
  std::int64_t context_len = kUnlimitedContext;
  std::optional<std::int64_t> max_chunk_size;
  double smooth_factor = 0.75;
  std::size_t resamples = 10000;
  std::uint64_t seed = 1;
  double confidence = 0.95;
  std::string json;  ///< file, or empty
  std::string plot;  ///< SVG file, or empty
};

/// `kdacheck predict`.
struct PredictCommand {
  double a = 0;
  double b = 0;
  std::int64_t base_chunk_size = 0;
  std::int64_t history_len = 0;
  std::int64_t page_size = 64;
  std::int64_t context_len = kUnlimitedContext;
  std::optional<std::int64_t> max_chunk_size;
  double smooth_factor = 0.75;
  std::optional<double> target_latency;  ///< ms; else that of the base
};

/// Fits, prints the report to `out` and an error of the fit, one line, to `err`; then writes the
/// files asked for, all of them even if one cannot be written.
/// Returns kSuccess, or kFailed for a fit error (also: no positive target). Throws Error for bad
/// usage and unreadable input or unwritable files.
[[nodiscard]] Exit run_fit(const FitCommand& command, std::ostream& out, std::ostream& err);

/// Prints the chunk size to `out`, or the reason why there is none to `err`. kFailed for the latter
/// and for a target that is not positive. Throws Error for numbers that are not finite.
[[nodiscard]] Exit run_predict(const PredictCommand& command, std::ostream& out, std::ostream& err);

}  // namespace kda::harness
