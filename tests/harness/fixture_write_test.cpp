#include "harness/content_hash.hpp"
#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <array>
#include <csignal>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace kda::harness::testing {
namespace {

namespace fs = std::filesystem;

class Write : public ::testing::Test {
 protected:
  [[nodiscard]] Case round_trip(const Case& fixture) const {
    write_fixture(target, fixture);
    return read_fixture(target);
  }

  TemporaryFolder folder;
  fs::path target = folder / "file.h5";
};

void expect_same_tensors(const std::map<std::string, Tensor>& a,
                         const std::map<std::string, Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(same(tensor, b.at(name))) << name;
}

TEST_F(Write, RoundTripOfEveryDtypeAndRank) {
  for (const Dtype dtype :
       {Dtype::kBf16, Dtype::kF16, Dtype::kF32, Dtype::kF64, Dtype::kI32, Dtype::kI64}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{0}, Shape{2, 3}, Shape{4, 0, 2},
                               Shape{1, 2, 3, 4, 5}}) {
      Case fixture = small_case();
      auto& inputs = std::get<KdaCase>(fixture.inputs).inputs;
      inputs.insert_or_assign("q", count_up(dtype, shape));
      inputs.insert_or_assign("cu_seqlens", count_up(dtype, shape));
      fixture.expected.reset();
      const Case read = round_trip(fixture);
      expect_same_tensors(inputs, std::get<KdaCase>(read.inputs).inputs);
    }
  }
}

TEST_F(Write, RoundTripOfTextsAndTensors) {
  Case fixture = small_case();
  fixture.description = "d\xc3\xa9j\xc3\xa0 vu\nsecond line";
  fixture.tags = "a,b";
  fixture.oracle = "mpmath";
  const Case read = round_trip(fixture);
  EXPECT_EQ(read.name, "small");
  EXPECT_EQ(read.description, fixture.description);
  EXPECT_EQ(read.tags, "a,b");
  EXPECT_EQ(read.oracle, "mpmath");
  EXPECT_EQ(read.op, Op::kChunkKda);
  expect_same_tensors(fixture.expected->tensors, read.expected->tensors);
}

TEST_F(Write, RoundTripOfNumbers) {
  Case fixture = small_case();
  Problem& options = std::get<KdaCase>(fixture.inputs).options;
  options.chunk_size = 32;
  options.scale = 0.1;
  options.lower_bound = -std::numeric_limits<double>::infinity();
  const Case read = round_trip(fixture);
  const Problem& got = std::get<KdaCase>(read.inputs).options;
  EXPECT_EQ(got.chunk_size, 32);
  EXPECT_EQ(got.scale, 0.1);
  EXPECT_EQ(got.lower_bound, options.lower_bound);
}

TEST_F(Write, RoundTripOfEachFlagAlone) {
  constexpr std::array kFlags{
      &Problem::use_qk_l2norm_in_kernel,
      &Problem::use_gate_in_kernel,
      &Problem::safe_gate,
      &Problem::use_beta_sigmoid_in_kernel,
      &Problem::allow_neg_eigval,
      &Problem::state_v_first,
      &Problem::output_final_state,
      &Problem::return_intermediate_states,
      &Problem::cp_context,
      &Problem::disable_recompute,
  };
  for (std::size_t set = 0; set < kFlags.size(); ++set) {
    Case fixture = small_case();
    fixture.expected.reset();
    for (std::size_t i = 0; i < kFlags.size(); ++i) {
      std::get<KdaCase>(fixture.inputs).options.*kFlags.at(i) = i == set;
    }
    const Case read = round_trip(fixture);
    for (std::size_t i = 0; i < kFlags.size(); ++i) {
      EXPECT_EQ(std::get<KdaCase>(read.inputs).options.*kFlags.at(i), i == set) << set << ' ' << i;
    }
  }
}

TEST_F(Write, RoundTripOfAnExpectedError) {
  Case fixture = small_case();
  fixture.op = Op::kKdaPrefill;
  fixture.expected = Expected{};
  fixture.expected->error = "head_dim_unsupported";
  const Case read = round_trip(fixture);
  EXPECT_EQ(read.op, Op::kKdaPrefill);
  EXPECT_EQ(std::get<KdaCase>(read.inputs).contract, Contract::kKdaPrefill);
  EXPECT_EQ(read.expected->error, "head_dim_unsupported");
  EXPECT_TRUE(read.expected->tensors.empty());
}

TEST_F(Write, RoundTripOfFits) {
  Case fixture = small_fit();
  fixture.expected->fit.target_latency = 7.5;
  fixture.expected->fit.warning = "fit_b_negative";
  fixture.expected->fit.raw_a = 1;
  fixture.expected->fit.raw_b = 2;
  fixture.expected->fit.raw_c = 3;
  Case read = round_trip(fixture);
  EXPECT_EQ(std::get<FitCase>(read.inputs).seq_lens, (std::vector<std::int64_t>{100, 200, 300}));
  EXPECT_EQ(std::get<FitCase>(read.inputs).latencies, (std::vector{1.5, 2.5, 4.5}));
  EXPECT_EQ(std::get<FitCase>(read.inputs).base_chunk_size, 512);
  EXPECT_EQ(read.expected->fit.a, 1e-4);
  EXPECT_EQ(read.expected->fit.b, 0.5);
  EXPECT_EQ(read.expected->fit.c, 3.0);
  EXPECT_EQ(read.expected->fit.target_latency, 7.5);
  EXPECT_EQ(read.expected->fit.warning, "fit_b_negative");
  EXPECT_EQ(read.expected->fit.raw_c, 3.0);

  fixture.inputs = FitCase{};
  read = round_trip(fixture);
  EXPECT_TRUE(std::get<FitCase>(read.inputs).seq_lens.empty());
  EXPECT_FALSE(std::get<FitCase>(read.inputs).base_chunk_size.has_value());
}

TEST_F(Write, RoundTripOfPredictions) {
  Case fixture = small_predict();
  auto& question = std::get<PredictCase>(fixture.inputs);
  question.target_latency = 12.5;
  question.no_target = true;
  question.history_len = 1000;
  question.page_size = 16;
  question.max_chunk_size = 2048;
  question.smooth_factor = 0.5;
  fixture.expected->predict = {std::nullopt, "no_target"};
  const Case read = round_trip(fixture);
  const auto& got = std::get<PredictCase>(read.inputs);
  EXPECT_EQ(got.a, 1e-4);
  EXPECT_EQ(got.b, 0.5);
  EXPECT_EQ(got.c, 3.0);
  EXPECT_EQ(got.base_chunk_size, 512);
  EXPECT_EQ(got.target_latency, 12.5);
  EXPECT_TRUE(got.no_target);
  EXPECT_EQ(got.history_len, 1000);
  EXPECT_EQ(got.page_size, 16);
  EXPECT_EQ(got.context_len, 4096);
  EXPECT_EQ(got.max_chunk_size, 2048);
  EXPECT_EQ(got.smooth_factor, 0.5);
  EXPECT_EQ(read.expected->predict.none, "no_target");
  EXPECT_FALSE(read.expected->predict.chunk_size.has_value());
}

TEST_F(Write, WithoutExpected) {
  write_fixture(target, small_case(), false);
  EXPECT_FALSE(read_fixture(target).expected.has_value());
}

TEST_F(Write, LargeTensorsAreCutIntoChunks) {
  Case fixture = small_case();
  fixture.expected.reset();
  auto& inputs = std::get<KdaCase>(fixture.inputs).inputs;
  inputs.insert_or_assign("q", count_up(Dtype::kF32, {3, 700'001, 1, 1}));
  inputs.insert_or_assign("k", count_up(Dtype::kF64, {5, 3, 128, 1000}));
  expect_same_tensors(inputs, std::get<KdaCase>(round_trip(fixture).inputs).inputs);
}

TEST_F(Write, EveryNonEmptyDatasetHasAChecksum) {
  write_fixture(target, small_case());
  edit(target, [](hid_t file) {
    for (const char* path : {"/inputs/q", "/inputs/beta", "/expected/o", "/expected/h"}) {
      const Handle id(H5Dopen2(file, path, H5P_DEFAULT));
      const Handle properties(H5Dget_create_plist(id.get()));
      EXPECT_EQ(H5Pget_nfilters(properties.get()), 1);
      EXPECT_TRUE(H5Pget_filter_by_id2(properties.get(), H5Z_FILTER_FLETCHER32, nullptr, nullptr,
                                       nullptr, 0, nullptr, nullptr) >= 0);
    }
  });
}

TEST_F(Write, SameContentSameBytes) {
  for (const Case& fixture : {small_case(), small_fit(), small_predict()}) {
    write_fixture(target, fixture);
    const fs::path again = folder / "again.h5";
    write_fixture(again, fixture);
    EXPECT_EQ(read_bytes(target), read_bytes(again));
  }
}

TEST_F(Write, ReplacesAFileAsAWhole) {
  write_bytes(target, "something else");
  write_fixture(target, small_case());
  EXPECT_EQ(read_fixture(target).name, "small");
  EXPECT_EQ(folder.entries(), std::vector<std::string>{"file.h5"});
}

void expect_unwritable(const fs::path& file) {
  expect_error([&] { write_fixture(file, small_case()); }, ErrorCode::kFileUnwritable, file, "/");
}

TEST_F(Write, NoFolderAndFolderInThePlaceOfTheFile) {
  expect_unwritable(folder / "none/file.h5");
  fs::create_directories(folder / "folder.h5/inside");
  expect_unwritable(folder / "folder.h5");
  EXPECT_EQ(folder.entries(), std::vector<std::string>{"folder.h5"});
}

TEST_F(Write, NotIntoProcOrSysfs) {  // read-only even for root
  expect_unwritable("/proc/file.h5");
  expect_unwritable("/sys/file.h5");
}

TEST_F(Write, FullDiskLeavesTheOldFile) {
  // A limit on the size of files makes write() fail as a full disk does.
  write_bytes(target, "old");
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit small{4096, old_limit.rlim_max};
  auto* const old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_unwritable(target);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_bytes(target), "old");
  EXPECT_EQ(folder.entries(), std::vector<std::string>{"file.h5"});
}

TEST_F(Write, TensorThatNoFileCanHold) {
  Case fixture = small_case();
  std::get<KdaCase>(fixture.inputs).inputs.insert_or_assign("q", Tensor(Dtype::kF32, Shape(33, 1)));
  expect_error([&] { write_fixture(target, fixture); }, ErrorCode::kFileUnwritable, target,
               "/inputs/q");
  EXPECT_TRUE(folder.entries().empty());
}

}  // namespace
}  // namespace kda::harness::testing
