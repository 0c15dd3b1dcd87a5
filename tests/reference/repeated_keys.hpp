#pragma once

#include "tests/reference/kda_inputs.hpp"

#include <cstdint>
#include <string>

namespace kda::tests {

/// One key of length 1 over and over, so that T holds one number all along each of its diagonals.
struct RepeatedKeys {
  std::int64_t T = 130;
  std::int64_t K = 64;
  std::int64_t V = 32;
  double beta = 0.9;
  bool query_is_key = true;
  bool constant_gate = false;  ///< one log decay for each channel; otherwise drawn for every token
  bool initial_state = false;
  std::int64_t period = 1;  ///< keys that take turns
  std::int64_t turn = 0;    ///< tokens after which other keys take over and beta falls; 0 = never

  [[nodiscard]] std::string text() const;
};

/// q, k and v rounded to `dtype`, log decays of -2^-12 to -2^-13, all outputs asked for.
[[nodiscard]] KdaInputs make(const RepeatedKeys& what, std::uint64_t seed, Dtype dtype);

}  // namespace kda::tests
