#pragma once

#include "reference/types/dtype.hpp"

#include <cstdint>

namespace kda::harness {

/// |got - expected|; 0 when they are equal (-0 = +0, inf = inf); NaN or inf when one is not finite
/// and they differ, so that no finite bound accepts it.
[[nodiscard]] double absolute_error(double expected, double got) noexcept;

/// Steps between `got` and `expected` rounded to `dtype`, counted in values of that float type;
/// +0 and -0 are one value. The largest count there is when one of them is not finite and they
/// differ.
[[nodiscard]] std::uint64_t ulp_distance(Dtype dtype, double expected, double got) noexcept;

/// How far a tensor, or a part of it, is from the expected one. Sums, so that parts can be merged.
struct Metrics {
  std::int64_t compared = 0;    ///< elements
  std::int64_t bad = 0;         ///< elements over the bound of the policy, see TensorReport
  std::int64_t non_finite = 0;  ///< not finite (or another infinity) where expected says otherwise
  double max_abs = 0;           ///< over elements with a finite error
  double max_rel = 0;           ///< |error| / |expected|, over expected != 0
  std::uint64_t max_ulp = 0;    ///< in the dtype of the result
  double max_expected = 0;
  double sum_error2 = 0;  ///< over elements with a finite error
  double sum_expected2 = 0;

  void add(Dtype dtype, double expected, double got) noexcept;
  void merge(const Metrics& other) noexcept;

  [[nodiscard]] double rms_expected() const noexcept;
  /// RMS(error) / RMS(expected); 0/0 = 0, x/0 = inf, and inf where their squares leave f64.
  [[nodiscard]] double rms_ratio() const noexcept;
  [[nodiscard]] double bad_share() const noexcept;
};

}  // namespace kda::harness
