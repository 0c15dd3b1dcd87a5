#pragma once

#include "harness/compare/policy.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kda::harness {

/// Sums over a group of elements with sigma > 0, z = (got - exact) / sigma.
struct SigmaSums {
  std::int64_t count = 0;
  std::int64_t rows = 0;  ///< that count as independent: not more than there are different keys
  double z2 = 0;
  double signed_z = 0;  ///< z sign(exact)
  double sigma2 = 0;
  double exact2 = 0;
  std::int64_t ruled = 0;       ///< elements of `o` where its storage makes half of the variance
  std::int64_t ruled_rows = 0;  ///< rows with such elements, as `rows` counts
  double ruled_z = 0;           ///< z sign(exact) of those

  void merge(const SigmaSums& other) noexcept;

  [[nodiscard]] double rms() const noexcept;   ///< of z; 0 without elements
  [[nodiscard]] double mean() const noexcept;  ///< of z sign(exact); 0 without elements
  /// RMS z / limit; 0 without rows.
  [[nodiscard]] double rms_share(const DeviationLimits& limits) const noexcept;
  [[nodiscard]] double rms_limit(const DeviationLimits& limits) const noexcept;
  /// |mean over ruled elements| / limit; absent when there are too few of them for the test.
  [[nodiscard]] std::optional<double> bias_share(const DeviationLimits& limits) const noexcept;
  [[nodiscard]] double bias_limit(const DeviationLimits& limits) const noexcept;
  [[nodiscard]] double ruled_mean() const noexcept;
};

/// How much of one kind of limit a result uses, and where it uses most.
struct Share {
  double share = 0;   ///< of the limit; > 1 fails
  std::string place;  ///< "n=0 hv=1 t=42"; empty while share is 0

  void raise(double other, const std::string& where);
};

/// What a tensor uses of the limits of policy `derived`.
struct SigmaUse {
  Share element;  ///< largest |z| / limit
  Share row;      ///< largest RMS z / limit of a row, for states also of a column
  Share group;    ///< largest RMS z / limit of a (sequence, head), (chunk, head), state, tensor
  /// Largest |mean of z sign(exact)| / limit of such a group; absent where the test applied to
  /// none.
  std::optional<Share> bias;
  SigmaSums sums;  ///< over the tensor

  void raise_bias(double share, const std::string& where);

  /// Error of an element, relative to the RMS of the tensor, from which on it fails.
  [[nodiscard]] double resolution(const DeviationLimits& limits) const noexcept;
};

}  // namespace kda::harness
