#pragma once

#include "tests/reference/kda_inputs.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kda::tests {

/// Kinds of inputs on which rounding errors behave differently.
struct InputFamily {
  std::string_view name;
  bool f16_range;  ///< values that f16 operands hold
  bool limit;      ///< beyond the bound (docs/bound.md, limits): neither drawn nor required
  /// q, k and v rounded to `dtype`, everything else f32; all outputs asked for.
  KdaInputs (*make)(const Extents& extents, std::uint64_t seed, Dtype dtype);
};

[[nodiscard]] const std::vector<InputFamily>& input_families();

/// A case of few tokens with extents, options, dtypes and family drawn from the seed.
struct DrawnCase {
  const InputFamily* family;
  KdaInputs inputs;
};
[[nodiscard]] DrawnCase draw_case(std::uint64_t seed);

}  // namespace kda::tests
