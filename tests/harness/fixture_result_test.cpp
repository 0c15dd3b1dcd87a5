#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace kda::harness::testing {
namespace {

class ResultFile : public ::testing::Test {
 protected:
  void expect_error_at(std::string_view object, ErrorCode code) const {
    expect_error([&] { (void)read_result(target); }, code, target, object);
  }

  TemporaryFolder folder;
  std::filesystem::path target = folder / "result.h5";
};

TEST_F(ResultFile, RoundTripOfTensors) {
  const Result result{{{"o", count_up(Dtype::kBf16, {1, 3, 1, 4})},
                       {"final_state", count_up(Dtype::kF32, {1, 1, 2, 4})},
                       {"h", count_up(Dtype::kF16, {1, 2, 1, 2, 4})}},
                      std::nullopt,
                      ""};
  write_result(target, result);
  const Result read = read_result(target);
  EXPECT_FALSE(read.error.has_value());
  ASSERT_EQ(read.tensors.size(), 3U);
  EXPECT_TRUE(same(read.tensors.at("o"), result.tensors.at("o")));
  EXPECT_TRUE(same(read.tensors.at("final_state"), result.tensors.at("final_state")));
  EXPECT_TRUE(same(read.tensors.at("h"), count_up(Dtype::kF16, {2, 1, 2, 4})));
}

TEST_F(ResultFile, OnlyALeadingOneOfFiveDimensionsIsDropped) {
  for (const Shape& shape : {Shape{1, 2, 2, 4}, Shape{2, 1, 1, 2, 2}}) {
    write_result(target, {{{"o", count_up(Dtype::kF32, {1})}, {"h", count_up(Dtype::kF32, shape)}},
                          std::nullopt,
                          ""});
    EXPECT_EQ(read_result(target).tensors.at("h").shape(), shape);
  }
}

TEST_F(ResultFile, RoundTripOfARefusal) {
  write_result(target, {{}, "beta_shape", "got (1, 2)"});
  const Result read = read_result(target);
  EXPECT_TRUE(read.tensors.empty());
  EXPECT_EQ(read.error, "beta_shape");
  EXPECT_EQ(read.message, "got (1, 2)");
  edit(target, [](hid_t file) { remove_attribute(file, "/", "message"); });
  EXPECT_EQ(read_result(target).message, "");
}

TEST_F(ResultFile, TensorsOrARefusal) {
  write_result(target, {{{"o", count_up(Dtype::kF32, {1})}}, "beta_shape", ""});
  expect_error_at("/", ErrorCode::kResultMalformed);
  write_result(target, {{{"h", count_up(Dtype::kF32, {1})}}, std::nullopt, ""});
  expect_error_at("/", ErrorCode::kResultMalformed);
}

TEST_F(ResultFile, IntegersAreNoResult) {
  write_result(target, {{{"o", count_up(Dtype::kI32, {1})}}, std::nullopt, ""});
  expect_error_at("/o", ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(ResultFile, OtherObjectsAreIgnored) {
  write_result(target, {{{"o", count_up(Dtype::kF32, {1})}, {"stages", count_up(Dtype::kF32, {9})}},
                        std::nullopt,
                        ""});
  EXPECT_EQ(read_result(target).tensors.size(), 1U);
}

TEST_F(ResultFile, DamageIsAnErrorAsInFixtures) {
  write_bytes(target, "not HDF5");
  expect_error_at("/", ErrorCode::kFileNotHdf5);
  write_result(target, {{}, "beta_shape", ""});
  edit(target, [](hid_t file) { add_dataset(file, "/o", {H5T_IEEE_F32LE, {2}}); });
  expect_error_at("/o", ErrorCode::kDatasetUnwritten);
}

TEST_F(ResultFile, CannotBeWrittenJustAnywhere) {
  const std::filesystem::path file = folder / "none/result.h5";
  expect_error(
      [&] {
        write_result(file, {{}, "beta_shape", ""});
      },
      ErrorCode::kFileUnwritable, file, "/");
}

}  // namespace
}  // namespace kda::harness::testing
