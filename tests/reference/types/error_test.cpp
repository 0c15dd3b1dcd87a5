#include "reference/types/error.hpp"

#include <set>

#include <gtest/gtest.h>

namespace kda {
namespace {

TEST(ErrorTable, IsOrderedCompleteAndUnique) {
  std::set<std::string_view> names;
  int last = 0;
  for (const ErrorInfo& row : all_errors()) {
    EXPECT_GT(static_cast<int>(row.code), last) << row.name;
    last = static_cast<int>(row.code);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_FALSE(row.fix.empty()) << row.name;
    EXPECT_EQ(name(row.code), row.name);
    ASSERT_NE(find_error(row.name), nullptr);
    EXPECT_EQ(find_error(row.name)->code, row.code);
  }
  EXPECT_EQ(find_error("no_such_error"), nullptr);
}

TEST(Error, SaysNameMessageAndFix) {
  const Error error(ErrorCode::kBetaShape, "beta: expected (1, 2, 3), got (1, 2)");
  EXPECT_EQ(error.code(), ErrorCode::kBetaShape);
  EXPECT_STREQ(error.what(),
               "beta_shape: beta: expected (1, 2, 3), got (1, 2). Fix: pass beta [B,T,HV]");
  const Error other(ErrorCode::kUsage, "message", "another fix");
  EXPECT_EQ(other.fix(), "another fix");
}

}  // namespace
}  // namespace kda
