#include "cuda/fit_batch.hpp"

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// What is refused, with which code, and that nothing was asked of the runtime by then; the plan.

namespace kda::cuda {
namespace {

class NotedRuntime final : public Runtime {
 public:
  void copy_to_device(void*, const void*, std::size_t bytes) override {
    calls.push_back("copy " + std::to_string(bytes));
  }
  void launch(const KernelForms& kernel, const LaunchShape& shape, void*) override {
    calls.push_back("launch " + std::string(kernel.name) + " " + std::to_string(shape.grid.x));
  }
  std::vector<std::string> calls;
};

/// A good call for two profiles, for others to spoil. Nothing is launched: plain memory will do.
struct Call {
  std::vector<std::int64_t> seq_lens = std::vector<std::int64_t>(30);
  std::vector<double> latencies = std::vector<double>(30);
  std::vector<std::int64_t> offsets = {0, 12, 30};
  std::vector<double> coefficients = std::vector<double>(6);
  std::vector<std::int32_t> codes = std::vector<std::int32_t>(2);
  std::vector<std::int64_t> workspace = std::vector<std::int64_t>(3);
  FitBatchArgs args;

  Call() {
    args.batch = {.seq_lens = seq_lens, .latencies = latencies, .offsets = offsets};
    args.coefficients = coefficients;
    args.codes = codes;
    args.workspace = std::as_writable_bytes(std::span(workspace));
  }
};

void expect_refused(ErrorCode code, const std::function<void(Call&)>& spoil) {
  Call call;
  spoil(call);
  NotedRuntime runtime;
  try {
    static_cast<void>(fit_batch(call.args, runtime));
    ADD_FAILURE() << "accepted, wanted " << name(code);
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
  }
  EXPECT_TRUE(runtime.calls.empty()) << runtime.calls.front();
}

/// The same data, a little further on: not a multiple of the element.
template <class T>
std::span<T> shifted(std::span<T> data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data.data()) + 2;
  return {reinterpret_cast<T*>(address), data.size()};
}

TEST(FitBatchArgs, AcceptsTheCallThatOthersSpoil) {
  Call call;
  NotedRuntime runtime;
  const FitBatchPlan plan = fit_batch(call.args, runtime);
  EXPECT_EQ(runtime.calls, (std::vector<std::string>{"copy 24", "launch fit 1"}));
  EXPECT_EQ(plan.text(), "fit 2 grid (1,1,1) block (128,1,1) workspace 24");
}

TEST(FitBatchArgs, LengthMismatchComesFirst) {
  expect_refused(ErrorCode::kFitLengthMismatch, [](Call& c) {
    c.args.batch.latencies = c.args.batch.latencies.first(29);
    c.args.batch.offsets = {};
  });
}

TEST(FitBatchArgs, Offsets) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<std::int64_t>& bad :
       std::vector<std::vector<std::int64_t>>{{},
                                              {0},
                                              {1, 12, 30},
                                              {0, 12, 29},
                                              {0, 31, 30},
                                              {0, -1, 30},
                                              {0, kLeast, 30},
                                              {0, kMost, 30},
                                              {0, 20, 10, 30}}) {
    expect_refused(ErrorCode::kShapeMismatch, [&](Call& c) { c.args.batch.offsets = bad; });
  }
}

TEST(FitBatchArgs, ResamplesBeyondAnyGrid) {
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{1} << 40, std::int64_t{1} << 62}) {
    expect_refused(ErrorCode::kShapeMismatch, [&](Call& c) { c.args.batch.resamples = bad; });
  }
}

TEST(FitBatchArgs, Outputs) {
  expect_refused(ErrorCode::kShapeMismatch,
                 [](Call& c) { c.args.coefficients = c.args.coefficients.first(5); });
  expect_refused(ErrorCode::kShapeMismatch, [](Call& c) { c.args.codes = c.args.codes.first(1); });
  expect_refused(ErrorCode::kShapeMismatch, [](Call& c) { c.args.batch.resamples = 5; });
}

TEST(FitBatchArgs, Addresses) {
  expect_refused(ErrorCode::kMisalignedPointer,
                 [](Call& c) { c.args.batch.seq_lens = shifted(c.args.batch.seq_lens); });
  expect_refused(ErrorCode::kMisalignedPointer,
                 [](Call& c) { c.args.batch.latencies = shifted(c.args.batch.latencies); });
  expect_refused(ErrorCode::kMisalignedPointer,
                 [](Call& c) { c.args.coefficients = shifted(c.args.coefficients); });
  expect_refused(ErrorCode::kMisalignedPointer,
                 [](Call& c) { c.args.codes = shifted(c.args.codes); });
  expect_refused(ErrorCode::kNullPointer, [](Call& c) {
    c.args.codes = std::span<std::int32_t>(static_cast<std::int32_t*>(nullptr), 2);
  });
}

TEST(FitBatchArgs, Workspace) {
  expect_refused(ErrorCode::kWorkspaceTooSmall,
                 [](Call& c) { c.args.workspace = c.args.workspace.first(23); });
  expect_refused(ErrorCode::kWorkspaceTooSmall, [](Call& c) { c.args.workspace = {}; });
  expect_refused(ErrorCode::kMisalignedPointer,
                 [](Call& c) { c.args.workspace = shifted(c.args.workspace); });
}

TEST(FitBatchArgs, NothingIsAskedForNoFits) {
  Call call;
  const std::array<std::int64_t, 1> none{0};
  call.args = {};
  call.args.batch.offsets = none;
  NotedRuntime runtime;
  EXPECT_EQ(fit_batch(call.args, runtime).fits, 0);
  EXPECT_TRUE(runtime.calls.empty());
}

TEST(FitBatchPlan, FourFitsABlock) {
  EXPECT_EQ(plan_fit_batch(1, 0).shape.grid.x, 1U);
  EXPECT_EQ(plan_fit_batch(4, 0).shape.grid.x, 1U);
  EXPECT_EQ(plan_fit_batch(5, 0).shape.grid.x, 2U);
  EXPECT_EQ(plan_fit_batch(3, 10000).fits, 30000);
  EXPECT_EQ(plan_fit_batch(3, 10000).shape.grid.x, 7500U);
  EXPECT_EQ(plan_fit_batch(3, 10000).workspace_bytes, 32U);
  EXPECT_EQ(plan_fit_batch(1, std::int64_t{4} * 0x7FFFFFFF).shape.grid.x, 0x7FFFFFFFU);
}

}  // namespace
}  // namespace kda::cuda
