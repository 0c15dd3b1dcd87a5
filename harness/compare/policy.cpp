#include "harness/compare/policy.hpp"

#include "reference/types/error.hpp"

#include <array>
#include <string>

namespace kda::harness {
namespace {

/// Limits in deviations. The largest of 1e9 normal values is 6.1: 7 for an element. The errors of
/// a row share the roundings of its token's q, k and gate, so that its RMS behaves like that of a
/// few values only: 4. Over many rows the RMS is 1 by definition of the deviation; 1.2 leaves room
/// for the model, and 2.8 / sqrt(rows) lets a single row have its 4.
constexpr RoundingLimits kRounding = {
    .element = 7, .row = 4, .group = 1.2, .group_small = 2.8, .lost_share = 0.45};

/// Whatever a case may cost in roundings, a tensor that is off by a twentieth of its size is taken
/// for wrong. This is a choice, not a derivation: kernels that round the inverse of a chunk once to
/// bf16 can exceed it where keys nearly coincide.
constexpr double kMostRms = 0.05;

constexpr std::array<Policy, 4> kPolicies = {{
    {.name = "exact",
     .meaning = "max|error| / max|expected| <= 1e-11 per tensor and sequence; two f64 references",
     .sequence_max = 1e-11,
     .tensor_rms = {},
     .rtol = {},
     .atol = {},
     .rounding = {}},
    {.name = "fla",
     .meaning = "RMS(error) / RMS(expected) <= 0.005 per tensor, as flash-linear-attention tests",
     .sequence_max = {},
     .tensor_rms = 0.005,
     .rtol = {},
     .atol = {},
     .rounding = {}},
    {.name = "sglang",
     .meaning = "|error| <= 3e-2 + 2e-2 |expected| per element, as SGLang tests",
     .sequence_max = {},
     .tensor_rms = {},
     .rtol = 2e-2,
     .atol = 3e-2,
     .rounding = {}},
    {.name = "derived",
     .meaning = "bound from the case: number formats times size, per element, row and head "
                "(a stand-in with modelled constants; default)",
     .sequence_max = {},
     .tensor_rms = kMostRms,
     .rtol = {},
     .atol = {},
     .rounding = kRounding},
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
