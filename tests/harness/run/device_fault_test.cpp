// Runs of `check` on the real cuda/gpu_device.cu over a stand-in of the CUDA runtime: what a call
// that fails, or a kernel that loses the device, means for the cases after it.

#include "cuda/fit_batch_plan.hpp"
#include "cuda/prefill_plan.hpp"
#include "cuda/recurrent_plan.hpp"
#include "harness/report/report.hpp"
#include "harness/run/run.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <gtest/gtest.h>

namespace kda::cuda {

// The stand-in launches nothing, so that any symbol will do. Results stay what allocation left.
const void* fit_gpu_symbol() { return "fit"; }
const void* prefill_factors_symbol(std::size_t /*index*/) { return "prefill_factors"; }
const void* prefill_chain_symbol(std::size_t /*index*/) { return "prefill_chain"; }
const void* recurrent_gpu_symbol(std::size_t /*index*/) { return "recurrent"; }

}  // namespace kda::cuda

namespace kda::harness {
namespace {

constexpr const char* kRecurrent =
    "op=recurrent_kda lens=3,4 H=1 K=8 V=8 gate=softplus initial_state=1 final_state=1";
constexpr const char* kPrefill = "op=kda_prefill T=3 H=1 final_state=1";

FakeCudart& fresh_fake() {
  FakeCudart::get() = FakeCudart{};
  return FakeCudart::get();
}

RunReport run_on_gpu(std::vector<std::string> implementations, std::vector<std::string> lines,
                     std::int64_t jobs = 1) {
  RunOptions options;
  options.implementations = std::move(implementations);
  options.case_lines = std::move(lines);
  options.kernels.device = DeviceChoice::kGpu;
  options.jobs = jobs;
  return run(options, [](std::int64_t, std::int64_t, const std::string&) {});
}

std::vector<std::string> codes(const RunReport& report) {
  std::vector<std::string> all;
  for (const CaseResult& result : report.results) all.push_back(result.code);
  return all;
}

void expect_nothing_left() {
  EXPECT_EQ(FakeCudart::get().live_buffers, 0);
  EXPECT_EQ(FakeCudart::get().live_streams, 0);
}

/// Every runtime call that a case of `implementation` makes, the n-th time too, fails once.
void expect_each_fault_costs_one_case(const std::string& implementation, const char* line) {
  fresh_fake();
  const RunReport unharmed = run_on_gpu({implementation}, {line});
  ASSERT_EQ(codes(unharmed), std::vector<std::string>{"non_finite"}) << "launches write nothing";
  const std::map<std::string, int> calls = FakeCudart::get().calls;
  EXPECT_GE(calls.size(), 10U);
  for (const auto& [call, times] : calls) {
    if (call == "cudaFree" || call == "cudaStreamDestroy") continue;  // nobody is told of those
    for (int n = 1; n <= times; ++n) {
      SCOPED_TRACE(call + " " + std::to_string(n) + " of " + std::to_string(times));
      FakeCudart& fake = fresh_fake();
      fake.fail_call = call;
      fake.fail_at = n;
      fake.fail_with = cudaErrorLaunchOutOfResources;
      const RunReport report = run_on_gpu({implementation}, {line, line, line});
      EXPECT_EQ(codes(report),
                (std::vector<std::string>{"cuda_runtime", "non_finite", "non_finite"}));
      EXPECT_EQ(report.results.front().verdict, Verdict::kFailed);
      EXPECT_EQ(report.stopped, "");
      EXPECT_EQ(report.not_run, 0);
      EXPECT_EQ(report.exit_status(), Exit::kFailed);
      expect_nothing_left();
    }
  }
}

TEST(DeviceFault, AnyRuntimeCallOfTheRecurrentKernelCostsOneCase) {
  expect_each_fault_costs_one_case("cuda-recurrent", kRecurrent);
}

TEST(DeviceFault, AnyRuntimeCallOfThePrefillKernelCostsOneCase) {
  expect_each_fault_costs_one_case("cuda-prefill", kPrefill);
}

TEST(DeviceFault, MemoryThatRunsOutAtAnyAllocationCostsOneCase) {
  fresh_fake();
  (void)run_on_gpu({"cuda-recurrent"}, {kRecurrent});
  const int allocations = FakeCudart::get().calls["cudaMalloc"];
  EXPECT_GE(allocations, 6);
  for (int n = 1; n <= allocations; ++n) {
    FakeCudart& fake = fresh_fake();
    fake.fail_call = "cudaMalloc";
    fake.fail_at = n;
    fake.fail_with = cudaErrorMemoryAllocation;
    const RunReport report = run_on_gpu({"cuda-recurrent"}, {kRecurrent, kRecurrent});
    EXPECT_EQ(codes(report), (std::vector<std::string>{"out_of_memory", "non_finite"})) << n;
    EXPECT_EQ(report.results.front().verdict, Verdict::kFailed);
    expect_nothing_left();
  }
}

TEST(DeviceFault, ALostDeviceStopsTheRunAndSaysWhatWasNotRun) {
  for (const cudaError_t fault : {cudaErrorIllegalAddress, cudaErrorECCUncorrectable}) {
    fresh_fake().fault_of_launch = fault;
    const RunReport report = run_on_gpu({"reference", "cuda-recurrent", "fast"},
                                        {kRecurrent, kRecurrent, kRecurrent, kRecurrent});
    EXPECT_EQ(codes(report), (std::vector<std::string>{"", "device_lost"}));
    EXPECT_EQ(report.results.front().verdict, Verdict::kPassed);
    EXPECT_EQ(report.results.back().verdict, Verdict::kFailed);
    EXPECT_EQ(report.not_run, 4) << "not all of the first one either";
    EXPECT_EQ(report.exit_status(), Exit::kFailed);
    EXPECT_NE(report.stopped.find("device_lost at op=recurrent_kda"), std::string::npos);
    EXPECT_NE(to_text(report).find("stopped: device_lost at"), std::string::npos);
    EXPECT_NE(to_text(report).find("4 more cases were not run"), std::string::npos);
    EXPECT_EQ(to_json(report).at("not_run"), 4);
    EXPECT_EQ(to_file_text(report, "here"), to_file_text(to_json(report, "here")));
    expect_nothing_left();
  }
}

TEST(DeviceFault, ALostDeviceStopsAllThreads) {
  fresh_fake().fault_of_launch = cudaErrorLaunchFailure;
  const std::vector<std::string> lines(40, kRecurrent);
  const RunReport report = run_on_gpu({"cuda-recurrent"}, lines, 2);
  EXPECT_FALSE(report.stopped.empty());
  EXPECT_LE(report.results.size(), 2U) << "one a thread";
  EXPECT_GE(report.not_run, 38);
  EXPECT_NE(report.exit_status(), Exit::kSuccess);
}

TEST(DeviceFault, ALostDeviceThatIsAKnownFailureIsNoSuccess) {
  RunReport report;
  report.results.resize(1);
  report.not_run = 3;
  report.stopped = "device_lost at x of y";
  report.conclude();
  EXPECT_EQ(report.count(Verdict::kPassed), 1);
  EXPECT_EQ(report.exit_status(), Exit::kUnavailable);
  report.results.clear();
  EXPECT_EQ(to_file_text(report, {}), to_file_text(to_json(report, {})));
}

TEST(DeviceFault, AnOldArchitectureIsNotToBeHadHere) {
  fresh_fake().major = 7;
  const RunReport report = run_on_gpu({"cuda-recurrent"}, {kRecurrent});
  EXPECT_EQ(codes(report), std::vector<std::string>{"architecture_unsupported"});
  EXPECT_EQ(report.exit_status(), Exit::kUnavailable);
}

}  // namespace
}  // namespace kda::harness
