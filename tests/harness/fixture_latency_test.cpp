#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

// Fixtures of the latency fit and the chunk-size prediction.

namespace kda::harness::testing {
namespace {

class LatencyFixture : public ::testing::Test {
 protected:
  void write(const Case& fixture) { write_fixture(target, fixture); }
  void change(const std::function<void(hid_t)>& how) { edit(target, how); }
  void expect_error_at(std::string_view object, ErrorCode code) const {
    expect_refused(target, code, object);
  }

  TemporaryFolder folder;
  std::filesystem::path target = folder / "file.h5";
};

using FixtureFit = LatencyFixture;
using FixturePredict = LatencyFixture;

TEST_F(FixtureFit, Inputs) {
  write(small_fit());
  change([](hid_t f) { remove(f, "/inputs/latencies"); });
  expect_error_at("/inputs/latencies", ErrorCode::kInputMissing);
  change([](hid_t f) { remove(f, "/inputs"); });
  expect_error_at("/inputs", ErrorCode::kInputMissing);

  write(small_fit());
  const std::array<std::int32_t, 2> lengths{7, 8};
  const std::array<float, 3> latencies{0.5F, 1.5F, 2.5F};
  change([&](hid_t f) {
    add_dataset(f, "/inputs/seq_lens", {H5T_STD_I32LE, {2}, lengths.data()});
    add_dataset(f, "/inputs/latencies", {H5T_IEEE_F32LE, {3}, latencies.data()});
  });
  const FitCase fit = std::get<FitCase>(read_fixture(target).inputs);
  EXPECT_EQ(fit.seq_lens, (std::vector<std::int64_t>{7, 8}));
  EXPECT_EQ(fit.latencies, (std::vector{0.5, 1.5, 2.5}));
  EXPECT_EQ(fit.base_chunk_size, 512);

  change([&](hid_t f) {
    add_dataset(f, "/inputs/seq_lens", {H5T_IEEE_F32LE, {3}, latencies.data()});
  });
  expect_error_at("/inputs/seq_lens", ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(FixtureFit, Answers) {
  write(small_fit());
  change([](hid_t f) { remove_attribute(f, "/expected", "b"); });
  expect_error_at("/expected@b", ErrorCode::kInputMissing);
  change([](hid_t f) {
    put_text(f, "/expected", "error", "fit_a_not_positive");
    put_real(f, "/expected", "raw_a", -1);
  });
  const Expected expected = *read_fixture(target).expected;
  EXPECT_EQ(expected.error, "fit_a_not_positive");
  EXPECT_EQ(expected.fit.raw_a, -1.0);
  change([](hid_t f) { put_real(f, "/expected", "chunk_size", 1); });
  expect_error_at("/expected@chunk_size", ErrorCode::kNameUnknown);
  change([](hid_t f) { remove(f, "/expected"); });
  EXPECT_FALSE(read_fixture(target).expected.has_value());
}

TEST_F(FixturePredict, Params) {
  write(small_predict());
  change([](hid_t f) {
    for (const char* name : {"history_len", "page_size", "smooth_factor", "no_target"}) {
      remove_attribute(f, "/params", name);
    }
    remove(f, "/inputs");
  });
  const PredictCase question = std::get<PredictCase>(read_fixture(target).inputs);
  EXPECT_EQ(question.history_len, 0);
  EXPECT_EQ(question.page_size, 64);
  EXPECT_EQ(question.context_len, 4096);
  EXPECT_EQ(question.smooth_factor, 0.75);
  EXPECT_FALSE(question.no_target);
  change([](hid_t f) { remove_attribute(f, "/params", "base_chunk_size"); });
  expect_error_at("/params@base_chunk_size", ErrorCode::kInputMissing);
}

TEST_F(FixturePredict, Answers) {
  write(small_predict());
  change([](hid_t f) { put_text(f, "/expected", "none", "no_target"); });
  expect_error_at("/expected@chunk_size", ErrorCode::kAttributeInvalid);
  change([](hid_t f) { remove_attribute(f, "/expected", "chunk_size"); });
  EXPECT_EQ(read_fixture(target).expected->predict.none, "no_target");
  change([](hid_t f) { remove_attribute(f, "/expected", "none"); });
  expect_error_at("/expected@chunk_size", ErrorCode::kInputMissing);
}

TEST_F(FixturePredict, HasNoInputs) {
  write(small_predict());
  const float one = 1;
  change([&](hid_t f) { add_dataset(f, "/inputs/q", {H5T_IEEE_F32LE, {1}, &one}); });
  expect_error_at("/inputs/q", ErrorCode::kNameUnknown);
}

}  // namespace
}  // namespace kda::harness::testing
