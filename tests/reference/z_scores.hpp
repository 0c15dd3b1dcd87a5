#pragma once

#include "reference/types/problem.hpp"
#include "reference/variance.hpp"

#include <string>
#include <vector>

namespace kda::tests {

/// Limits on z = (got - exact) / sigma that every honest result keeps (docs/bound.md).
inline constexpr double kElementLimit = 7;
inline constexpr double kRowLimit = 4;
inline constexpr double kGroupLimit = 1.5;       ///< RMS of many independent rows ...
inline constexpr double kGroupSmallLimit = 2.5;  ///< ... to which this over sqrt(rows) is added

/// z of one tensor, all sequences and heads together.
struct ZScores {
  double median = 0;  ///< of |z|
  double rms = 0;
  double max = 0;            ///< largest |z|
  double row = 0;            ///< largest RMS of a row (of states: or of a column)
  double group = 0;          ///< largest RMS of a group over its limit
  std::int64_t unequal = 0;  ///< elements with sigma = 0 that differ
  std::int64_t non_finite = 0;

  [[nodiscard]] bool accepted() const;
  [[nodiscard]] std::string text() const;
};

/// Of o, final_state and h, those that `exact` has.
struct ZReport {
  ZScores o;
  ZScores final_state;
  ZScores h;

  [[nodiscard]] bool accepted() const;
};

/// `exact` in f64; `sigma` from the same case.
[[nodiscard]] ZReport z_scores(const Outputs& got, const Outputs& exact,
                               const reference::Deviations& sigma, const Semantics& semantics);

}  // namespace kda::tests
