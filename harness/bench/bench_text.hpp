#pragma once

#include "harness/bench/bench_file.hpp"

#include <cstddef>
#include <string>

namespace kda::harness {

/// A table of medians with the spread of the repetitions, floors and fractions, then what was
/// skipped, with reasons, and errors.
[[nodiscard]] std::string to_text(const BenchFile& file);

/// "12.3 us", in the unit that suits.
[[nodiscard]] std::string seconds_text(double seconds);

/// Benchmarks that reported an error.
[[nodiscard]] std::size_t count_failed(const BenchFile& file);

}  // namespace kda::harness
