#include "harness/compare/token_profile.hpp"

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

TEST(TokenProfile, HoldsTheLargestShareOfEveryToken) {
  TokenProfile profile;
  EXPECT_TRUE(profile.shares().empty());
  profile.add(3, 0.5);
  profile.add(3, 0.25);
  profile.add(0, 2);
  EXPECT_EQ(profile.step(), 1);
  EXPECT_EQ(profile.shares(), (std::vector<double>{2, 0, 0, 0.5}));
}

TEST(TokenProfile, LongSequencesTakeNoMoreRoom) {
  TokenProfile profile;
  for (std::int64_t t = 0; t < 1'000'000; ++t) profile.add(t, t == 700'000 ? 9 : 0.125);
  EXPECT_EQ(profile.step(), 32768);  // 31 stretches
  ASSERT_EQ(profile.shares().size(), 31U);
  for (std::size_t i = 0; i < 31; ++i)
    EXPECT_EQ(profile.shares()[i], i == 700'000 / 32768 ? 9 : 0.125) << i;
}

TEST(TokenProfile, AFarTokenFirst) {
  TokenProfile profile;
  profile.add(std::int64_t{1} << 40, 1);
  profile.add(0, 3);
  EXPECT_LE(profile.shares().size(), TokenProfile::kMost);
  EXPECT_EQ(profile.shares().front(), 3);
  EXPECT_EQ(profile.shares().back(), 1);
}

TEST(TokenProfile, MergesDifferentSteps) {
  TokenProfile fine;
  fine.add(5, 4);
  TokenProfile coarse;
  coarse.add(100, 1);
  coarse.add(7, 2);
  TokenProfile either = fine;
  either.merge(coarse);
  TokenProfile other = coarse;
  other.merge(fine);
  EXPECT_EQ(either.step(), 4);
  EXPECT_EQ(either.shares(), other.shares());
  EXPECT_EQ(either.shares()[1], 4);
  EXPECT_EQ(either.shares()[25], 1);
}

}  // namespace
}  // namespace kda::harness
