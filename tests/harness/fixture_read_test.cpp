#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

// What a fixture must hold, and what it must not.

namespace kda::harness::testing {
namespace {

class Fixture : public ::testing::Test {
 protected:
  void write(const Case& fixture) { write_fixture(target, fixture); }
  void change(const std::function<void(hid_t)>& how) { edit(target, how); }
  void expect_error_at(std::string_view object, ErrorCode code) const {
    expect_refused(target, code, object);
  }
  /// Writes the small case, changes it, and wants this error.
  void expect_after(const std::function<void(hid_t)>& how, std::string_view object,
                    ErrorCode code) {
    write(small_case());
    change(how);
    expect_error_at(object, code);
  }

  TemporaryFolder folder;
  std::filesystem::path target = folder / "file.h5";
};

using FixtureHead = Fixture;
using FixtureNames = Fixture;
using FixtureExpected = Fixture;

TEST_F(FixtureHead, AnotherFormat) {
  const auto at = "/@format";
  expect_after([](hid_t f) { put_text(f, "/", "format", "else"); }, at, ErrorCode::kFormatUnknown);
  expect_after([](hid_t f) { put_integer(f, "/", "format", 1); }, at, ErrorCode::kFormatUnknown);
  expect_after([](hid_t f) { remove_attribute(f, "/", "format"); }, at, ErrorCode::kFormatUnknown);
}

TEST_F(FixtureHead, AnotherVersion) {
  const auto at = "/@version";
  // Whatever else a later version may hold, its version is what is reported.
  expect_after(
      [](hid_t f) {
        put_integer(f, "/", "version", 2);
        put_text(f, "/", "op", "future_op");
        remove(f, "/inputs");
      },
      at, ErrorCode::kVersionUnsupported);
  expect_after([](hid_t f) { put_integer(f, "/", "version", 0); }, at,
               ErrorCode::kVersionUnsupported);
  expect_after([](hid_t f) { remove_attribute(f, "/", "version"); }, at, ErrorCode::kInputMissing);
  expect_after([](hid_t f) { put_text(f, "/", "version", "1"); }, at, ErrorCode::kAttributeInvalid);
}

TEST_F(FixtureHead, OpAndName) {
  expect_after([](hid_t f) { put_text(f, "/", "op", "kda_postfill"); }, "/@op",
               ErrorCode::kOpUnknown);
  expect_after([](hid_t f) { remove_attribute(f, "/", "op"); }, "/@op", ErrorCode::kInputMissing);
  expect_after([](hid_t f) { remove_attribute(f, "/", "name"); }, "/@name",
               ErrorCode::kInputMissing);
}

TEST_F(FixtureHead, OptionalTexts) {
  write(small_case());
  change([](hid_t f) {
    for (const char* name : {"description", "tags", "oracle"}) remove_attribute(f, "/", name);
  });
  EXPECT_EQ(read_fixture(target).description, "");
  change([](hid_t f) {
    put_text(f, "/", "description", "what");
    put_text(f, "/", "tags", "a,b");
    put_text(f, "/", "oracle", "mpmath");
    put_text(f, "/", "remark", "other root attributes are nobody's business");
  });
  const Case read = read_fixture(target);
  EXPECT_EQ(read.description, "what");
  EXPECT_EQ(read.tags, "a,b");
  EXPECT_EQ(read.oracle, "mpmath");
  EXPECT_EQ(read.file, target);
}

TEST_F(FixtureHead, SeveralThreadsTakeTurns) {
  write(small_case());
  std::vector<std::jthread> threads;
  threads.reserve(4);
  std::atomic<int> read{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) read += read_fixture(target).name == "small" ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(read, 40);
}

TEST_F(FixtureNames, UnknownOnes) {
  const float one = 1;
  const auto dataset_at = [&](const char* path) {
    return [path, &one](hid_t f) { add_dataset(f, path, {H5T_IEEE_F32LE, {1}, &one}); };
  };
  const auto unknown = ErrorCode::kNameUnknown;
  expect_after(dataset_at("/inputs/alpha"), "/inputs/alpha", unknown);
  expect_after(dataset_at("/inputs/A_LOG"), "/inputs/A_LOG", unknown);
  expect_after(dataset_at("/inputs/seq_lens"), "/inputs/seq_lens", unknown);
  expect_after(dataset_at("/params/scale"), "/params/scale", unknown);
  expect_after(dataset_at("/expected/out"), "/expected/out", unknown);
  expect_after(dataset_at("/extra"), "/extra", unknown);
  expect_after(
      [](hid_t f) {
        const Handle group(H5Gcreate2(f, "/more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      },
      "/more", unknown);
  expect_after([](hid_t f) { put_integer(f, "/params", "chunksize", 64); }, "/params@chunksize",
               unknown);
  expect_after([](hid_t f) { put_real(f, "/params", "smooth_factor", 1); }, "/params@smooth_factor",
               unknown);
  expect_after([](hid_t f) { put_integer(f, "/inputs", "chunk_size", 64); }, "/inputs@chunk_size",
               unknown);
  expect_after([](hid_t f) { put_real(f, "/expected", "a", 1); }, "/expected@a", unknown);
}

TEST_F(FixtureNames, ThatAreNoTextArePrintedAsBytes) {
  const float one = 1;
  expect_after(
      [&](hid_t f) {
        add_dataset(f, "/inputs/bad\xff\x01", {H5T_IEEE_F32LE, {1}, &one});
      },
      "/inputs/bad\\xff\\x01", ErrorCode::kNameUnknown);
}

TEST_F(FixtureNames, MissingInputs) {
  for (const char* name : {"q", "k", "v", "g", "beta"}) {
    const std::string path = std::string("/inputs/") + name;
    expect_after([&](hid_t f) { remove(f, path); }, path, ErrorCode::kInputMissing);
  }
  expect_after([](hid_t f) { remove(f, "/inputs"); }, "/inputs", ErrorCode::kInputMissing);
}

TEST_F(FixtureNames, ParamsMayBeAbsent) {
  Case fixture = small_case();
  fixture.expected.reset();
  write(fixture);
  change([](hid_t f) { remove(f, "/params"); });
  const Problem options = std::get<KdaCase>(read_fixture(target).inputs).options;
  EXPECT_EQ(options.chunk_size, 64);
  EXPECT_FALSE(options.scale.has_value());
  EXPECT_FALSE(options.lower_bound.has_value());
  EXPECT_FALSE(options.output_final_state);
}

TEST_F(FixtureExpected, MayBeAbsent) {
  write(small_case());
  change([](hid_t f) { remove(f, "/expected"); });
  EXPECT_FALSE(read_fixture(target).expected.has_value());
}

TEST_F(FixtureExpected, ErrorOrTensors) {
  write(small_case());
  change([](hid_t f) { put_text(f, "/expected", "error", "beta_shape"); });
  expect_error_at("/expected@error", ErrorCode::kAttributeInvalid);
  change([](hid_t f) {
    for (const char* path : {"/expected/o", "/expected/h", "/expected/final_state"}) {
      remove(f, path);
    }
  });
  EXPECT_EQ(read_fixture(target).expected->error, "beta_shape");
  change([](hid_t f) { remove_attribute(f, "/expected", "error"); });
  expect_error_at("/expected/o", ErrorCode::kInputMissing);
}

TEST_F(FixtureExpected, ShapesThatTheInputsImply) {
  const Tensor values = count_up(Dtype::kF64, {64});
  const auto shaped = [&](const char* path, const std::vector<hsize_t>& shape) {
    return [=, &values](hid_t f) { add_dataset(f, path, {H5T_IEEE_F64LE, shape, values.data()}); };
  };
  const auto wrong = ErrorCode::kExpectedShape;
  expect_after(shaped("/expected/o", {1, 3, 1, 3}), "/expected/o", wrong);
  expect_after(shaped("/expected/o", {3, 1, 4}), "/expected/o", wrong);
  expect_after(shaped("/expected/final_state", {1, 1, 4, 2}), "/expected/final_state", wrong);
  expect_after(shaped("/expected/h", {2, 1, 2, 4}), "/expected/h", wrong);
  expect_after(shaped("/expected/h", {2, 1, 1, 2, 4}), "/expected/h", wrong);
}

TEST_F(FixtureExpected, LeadingOneOfChunkStatesIsDropped) {
  write(small_case());
  const Tensor values = count_up(Dtype::kF64, {1, 1, 2, 4});
  change([&](hid_t f) {
    add_dataset(f, "/expected/h", {H5T_IEEE_F64LE, {1, 1, 1, 2, 4}, values.data()});
  });
  EXPECT_TRUE(same(read_fixture(target).expected->tensors.at("h"), values));
}

TEST_F(FixtureExpected, TensorsThatAreAskedFor) {
  for (const char* path : {"/expected/o", "/expected/final_state", "/expected/h"}) {
    expect_after([&](hid_t f) { remove(f, path); }, path, ErrorCode::kInputMissing);
  }
  // Not asked for: need not be there, and of whatever shape it is, it is ignored.
  write(small_case());
  const Tensor values = count_up(Dtype::kF64, {7});
  change([&](hid_t f) {
    put_integer(f, "/params", "output_final_state", 0);
    put_integer(f, "/params", "return_intermediate_states", 0);
    add_dataset(f, "/expected/final_state", {H5T_IEEE_F64LE, {7}, values.data()});
    remove(f, "/expected/h");
  });
  EXPECT_EQ(read_fixture(target).expected->tensors.size(), 2U);
}

TEST_F(FixtureExpected, IntegersAreNoExpectedValues) {
  const std::vector<std::int64_t> values(12);
  expect_after(
      [&](hid_t f) {
        add_dataset(f, "/expected/o", {H5T_STD_I64LE, {1, 3, 1, 4}, values.data()});
      },
      "/expected/o", ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(FixtureExpected, OfInputsThatTheContractRefusesIsLeftToTheRun) {
  write(small_case());
  const Tensor values = count_up(Dtype::kF32, {64});
  change([&](hid_t f) {
    add_dataset(f, "/inputs/beta", {H5T_IEEE_F32LE, {2, 2}, values.data()});
    remove(f, "/expected/h");
  });
  const Case read = read_fixture(target);
  EXPECT_EQ(std::get<KdaCase>(read.inputs).inputs.at("beta").shape(), (Shape{2, 2}));
  EXPECT_EQ(read.expected->tensors.size(), 2U);
}

}  // namespace
}  // namespace kda::harness::testing
