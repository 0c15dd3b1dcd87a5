#pragma once

#include "reference/types/dtype.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace kda::harness {

/// Limits of the policy `derived`, in standard deviations of the rounding error that the number
/// formats of the case make unavoidable (policy_bound.hpp has the deviation and its origin).
struct RoundingLimits {
  double element;      ///< every element
  double row;          ///< RMS over a row of `o`, over a row and over a column of a state
  double group;        ///< RMS over a (sequence, head), or over one state matrix, ...
  double group_small;  ///< ... to which group_small / sqrt(rows) is added
  /// An element above the RMS of its tensor may not be off by this share of itself: a lost sign
  /// (200%) or exponent bit (50% or 100%) fails however large its neighbours are.
  double lost_share;
};

/// A named criterion. What is absent is not tested; what is present is tested on `o`, `final_state`
/// and `h` alike. Every test accepts only if `error <= bound` holds, so that NaN fails.
struct Policy {
  std::string_view name;
  std::string_view meaning;                ///< one line for `kdacheck list policies`
  std::optional<double> sequence_max;      ///< max|error| / max|expected|, per tensor and sequence
  std::optional<double> tensor_rms;        ///< RMS(error) / RMS(expected), per tensor
  std::optional<double> rtol;              ///< |error| <= atol + rtol * |expected|, per element
  std::optional<double> atol;              ///< given together with rtol
  std::optional<RoundingLimits> rounding;  ///< a bound from the case
};

/// exact, fla, sglang, derived.
[[nodiscard]] std::span<const Policy> all_policies() noexcept;

/// Throws kPolicyUnknown, naming the known ones.
[[nodiscard]] const Policy& find_policy(std::string_view name);

/// What judges a result when nobody chose: `exact` for f64, which only the references compute in,
/// `derived` for every other dtype. For files, where f64 may be somebody's way of storing bf16, use
/// find_policy("derived").
[[nodiscard]] const Policy& default_policy(Dtype result);

}  // namespace kda::harness
