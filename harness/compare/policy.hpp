#pragma once

#include "reference/types/dtype.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kda::harness {

/// Limits of the policy `derived`, on z = (got - exact) / sigma, where sigma is the deviation of
/// the rounding error that the number formats make unavoidable (reference/variance.hpp). Where
/// sigma is 0 the values must be equal.
struct DeviationLimits {
  double element;      ///< |z| of every element
  double row;          ///< RMS z over a row of `o`, over a row and over a column of a state
  double group;        ///< RMS z of a (sequence, head), a (chunk, head), a state, a tensor, ...
  double group_small;  ///< ... plus group_small / sqrt(rows)
  double bias;         ///< mean of z sign(exact) over elements of `o` that its storage rules, ...
  double bias_small;   ///< ... plus bias_small / sqrt(rows)
  std::int64_t bias_elements;  ///< fewer of them say nothing about the bias
};

/// A named criterion. What is absent is not tested; what is present is tested on `o`, `final_state`
/// and `h` alike. Every test accepts only if `error <= bound` holds, so that NaN fails.
struct Policy {
  std::string_view name;
  std::string_view meaning;                   ///< one line for `kdacheck list policies`
  std::optional<double> sequence_max;         ///< max|error| / max|expected|, per tensor, sequence
  std::optional<double> tensor_rms;           ///< RMS(error) / RMS(expected), per tensor
  std::optional<double> rtol;                 ///< |error| <= atol + rtol * |expected|, per element
  std::optional<double> atol;                 ///< given together with rtol
  std::optional<DeviationLimits> deviations;  ///< a bound from the case and the formats
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
