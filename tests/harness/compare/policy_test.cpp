#include "harness/compare/policy.hpp"

#include "harness/compare/policy_bound.hpp"
#include "reference/types/error.hpp"

#include <cmath>
#include <set>
#include <string>

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
                         (policy.rtol && policy.atol ? 1 : 0) + (policy.rounding ? 1 : 0);
    EXPECT_EQ(criteria, policy.name == "derived" ? 2 : 1) << policy.name;
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

TEST(UnitRoundoff, IsHalfAnUlpOfOne) {
  EXPECT_EQ(unit_roundoff(Dtype::kBf16), 0x1p-8);
  EXPECT_EQ(unit_roundoff(Dtype::kF16), 0x1p-11);
  EXPECT_EQ(unit_roundoff(Dtype::kF32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(Dtype::kF64), 0x1p-53);
}

class RoundingDeviation : public testing::Test {
 protected:
  /// [2, 2], columns of very different size.
  const std::vector<double> expected_ = {1, 1000, -1, 1000};
  const std::vector<double> no_terms_ = std::vector<double>(4);
  const Formats bf16_{.operands = Dtype::kBf16,
                      .result = Dtype::kBf16,
                      .expected = Dtype::kF64,
                      .tokens = 64,
                      .overlap = {0}};

  std::vector<double> deviation(const Formats& formats) const {
    return rounding_deviation(expected_, no_terms_, 2, 0, formats);
  }
};

TEST_F(RoundingDeviation, IsOfTheOrderOfTheUnitRoundoff) {
  const auto sigma = deviation(bf16_);
  EXPECT_GT(sigma[0], 0.9 * 0x1p-8);
  EXPECT_LT(sigma[0], 1.2 * 0x1p-8);
}

TEST_F(RoundingDeviation, ScalesWithTheColumn) {
  const auto sigma = deviation(bf16_);
  EXPECT_NEAR(sigma[1] / sigma[0], 1000, 1e-6);
}

TEST_F(RoundingDeviation, ScalesWithTheFormat) {
  Formats f32 = bf16_;
  f32.operands = f32.result = Dtype::kF32;
  Formats f16 = bf16_;
  f16.operands = f16.result = Dtype::kF16;
  EXPECT_NEAR(deviation(bf16_)[0] / deviation(f16)[0], 8, 0.01);
  EXPECT_LT(deviation(f32)[0], 1e-5);
}

TEST_F(RoundingDeviation, GrowsWithTokensOverlapTermsAndMixing) {
  const double base = deviation(bf16_)[0];
  Formats f32 = bf16_;
  f32.operands = f32.result = Dtype::kF32;
  Formats longer = f32;
  longer.tokens = 4096;
  EXPECT_GT(deviation(longer)[0], 10 * deviation(f32)[0]);
  Formats overlapping = bf16_;
  overlapping.overlap = {10};
  EXPECT_GT(deviation(overlapping)[0], 3 * base);
  const std::vector<double> terms(4, 10);
  EXPECT_GT(rounding_deviation(expected_, terms, 2, 0, bf16_)[0], 9 * base);
  EXPECT_GT(rounding_deviation(expected_, no_terms_, 2, 1, bf16_)[0], 1.3 * base);
}

TEST_F(RoundingDeviation, AllowsForTheStorageOfTheExpectedValues) {
  Formats stored = bf16_;
  stored.operands = stored.result = Dtype::kF64;
  stored.tokens = 0;
  const double exact = deviation(stored)[1];
  stored.expected = Dtype::kF32;
  EXPECT_GT(deviation(stored)[1], exact);
}

TEST_F(RoundingDeviation, OfZerosIsBelowTheSmallestNormalNumbers) {
  for (const double sigma : rounding_deviation(no_terms_, no_terms_, 2, 0.5, bf16_)) {
    EXPECT_GT(sigma, 0);
    EXPECT_LT(sigma, 0x1p-124);
  }
}

TEST_F(RoundingDeviation, IgnoresWhatIsNotFinite) {
  const std::vector<double> odd = {1, INFINITY, NAN, 1};
  for (const double sigma : rounding_deviation(odd, no_terms_, 2, 0, bf16_)) {
    EXPECT_TRUE(std::isfinite(sigma));
  }
}

}  // namespace
}  // namespace kda::harness
