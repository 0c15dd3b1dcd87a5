#include "harness/compare/policy.hpp"

#include "reference/types/error.hpp"

#include <array>
#include <string>

namespace kda::harness {
namespace {

/// The largest of 1e9 normal values is 6.1, and the RMS of z of an honest result is at most 1.15: 7
/// for an element. The errors of a row share the roundings of its token's q, k and gate, so that
/// its RMS behaves like that of one to four values: 4. Over many rows 1.15 becomes 1.5, and
/// 2.5 / sqrt(rows) gives a single row its 4. Truncating the output instead of rounding it moves
/// the mean by 0.72 / 0.4248 = 1.7; honest results use 4% of 0.3.
constexpr DeviationLimits kDeviations = {.element = 7,
                                         .row = 4,
                                         .group = 1.5,
                                         .group_small = 2.5,
                                         .bias = 0.3,
                                         .bias_small = 3,
                                         .bias_elements = 1000};

constexpr std::array<Policy, 4> kPolicies = {{
    {.name = "exact",
     .meaning = "max|error| / max|expected| <= 1e-11 per tensor and sequence; two f64 references",
     .sequence_max = 1e-11,
     .tensor_rms = {},
     .rtol = {},
     .atol = {},
     .deviations = {}},
    {.name = "fla",
     .meaning = "RMS(error) / RMS(expected) <= 0.005 per tensor, as flash-linear-attention tests",
     .sequence_max = {},
     .tensor_rms = 0.005,
     .rtol = {},
     .atol = {},
     .deviations = {}},
    {.name = "sglang",
     .meaning = "|error| <= 3e-2 + 2e-2 |expected| per element, as SGLang tests",
     .sequence_max = {},
     .tensor_rms = {},
     .rtol = 2e-2,
     .atol = 3e-2,
     .deviations = {}},
    {.name = "derived",
     .meaning = "errors against the deviation that the number formats make unavoidable, per "
                "element, row and group; and their mean (default)",
     .sequence_max = {},
     .tensor_rms = {},
     .rtol = {},
     .atol = {},
     .deviations = kDeviations},
}};

}  // namespace

std::span<const Policy> all_policies() noexcept { return kPolicies; }

const Policy& find_policy(std::string_view name) {
  std::string known;
  for (const Policy& policy : kPolicies) {
    if (policy.name == name) return policy;
    known += (known.empty() ? "" : ", ") + std::string(policy.name);
  }
  throw Error(ErrorCode::kPolicyUnknown,
              "policy: wanted one of " + known + ", got '" + std::string(name) + "'");
}

const Policy& default_policy(Dtype result) {
  return find_policy(result == Dtype::kF64 ? "exact" : "derived");
}

}  // namespace kda::harness
