#include "harness/compare/policy.hpp"

#include "reference/types/error.hpp"

#include <set>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

TEST(Policy, FourAreKnownByName) {
  std::set<std::string_view> names;
  for (const Policy& policy : all_policies()) {
    names.insert(policy.name);
    EXPECT_EQ(&find_policy(policy.name), &policy);
    EXPECT_FALSE(policy.meaning.empty());
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"exact", "fla", "sglang", "derived"}));
}

TEST(Policy, PublicOnesHaveTheirPublishedNumbers) {
  EXPECT_EQ(find_policy("exact").sequence_max, 1e-11);
  EXPECT_EQ(find_policy("fla").tensor_rms, 0.005);
  EXPECT_EQ(find_policy("sglang").rtol, 2e-2);
  EXPECT_EQ(find_policy("sglang").atol, 3e-2);
}

TEST(Policy, EachHasACriterion) {
  for (const Policy& policy : all_policies()) {
    const int criteria = (policy.sequence_max ? 1 : 0) + (policy.tensor_rms ? 1 : 0) +
                         (policy.rtol && policy.atol ? 1 : 0) + (policy.deviations ? 1 : 0);
    EXPECT_EQ(criteria, 1) << policy.name;
  }
}

TEST(Policy, UnknownNamesAreRefusedWithTheKnownOnes) {
  try {
    (void)find_policy("strict");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPolicyUnknown);
    EXPECT_EQ(error.message(), "policy: wanted one of exact, fla, sglang, derived, got 'strict'");
  }
}

TEST(Policy, DefaultFollowsTheDtypeOfTheResult) {
  EXPECT_EQ(default_policy(Dtype::kF64).name, "exact");
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16, Dtype::kF32}) {
    EXPECT_EQ(default_policy(dtype).name, "derived");
  }
}

}  // namespace
}  // namespace kda::harness
