#include "bench/checked.hpp"

#include "bench/gpu_call.hpp"
#include "harness/case/case_line.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// That nothing wrong is ever timed: planted wrong implementations and kernels, which run on the CPU
// executor in place of a GPU.

namespace kda::bench {
namespace {

using harness::Case;
using harness::Implementation;

/// Keeps what would be reported.
class Keeper final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& reported) override {
    for (const Run& run : reported) runs.push_back(run);
  }
  std::vector<Run> runs;
};

/// The one run of a benchmark that makes a single iteration.
benchmark::BenchmarkReporter::Run run_once(const std::function<void(benchmark::State&)>& function,
                                           bool manual_time = false) {
  benchmark::ClearRegisteredBenchmarks();
  auto* registered = benchmark::RegisterBenchmark("planted", function)->Iterations(2);
  if (manual_time) registered->UseManualTime();
  Keeper keeper;
  benchmark::RunSpecifiedBenchmarks(&keeper);
  EXPECT_EQ(keeper.runs.size(), 1U);
  return keeper.runs.at(0);
}

const Case& small_case() {
  static const Case made = harness::make_case(harness::parse_case_line(
      "op=recurrent_kda T=3 H=2 K=16 V=16 l2norm=1 initial_state=1 final_state=1"));
  return made;
}

/// The f32 peer with something done to its answers.
Implementation peer(const std::string& name, const std::function<void(Outputs&)>& change) {
  Implementation implementation = harness::find_implementation("peer-f32");
  implementation.name = name;
  implementation.run = [run = implementation.run, change](const Case& c,
                                                          const harness::KernelSettings& s) {
    Outputs outputs = std::get<Outputs>(run(c, s));
    change(outputs);
    return harness::Answer(std::move(outputs));
  };
  return implementation;
}

benchmark::BenchmarkReporter::Run time_peer(const Implementation& implementation,
                                            const Rates& rates = {1e18, 1e18}) {
  return run_once([&](benchmark::State& state) {
    time_implementation(state, implementation, small_case(), rates);
  });
}

TEST(Checked, ARightImplementationIsTimedWithFloorAndFraction) {
  const auto run = time_peer(peer("right", [](Outputs&) {}));
  EXPECT_FALSE(run.error_occurred) << run.error_message;
  EXPECT_EQ(run.iterations, 2);
  // q, k, v, g, o of 3 x 2 x 16 bf16, beta, two f32 states.
  EXPECT_EQ(run.counters.at("min_bytes"), 5 * 3 * 2 * 16 * 2 + 3 * 2 * 2 + 2 * 2 * 16 * 16 * 4);
  EXPECT_EQ(run.counters.at("min_flops"), 6 * 3 * 2 * 16 * 16);
  EXPECT_GT(run.counters.at("tokens/s"), 0);
  EXPECT_LT(run.counters.at("fraction"), 1);
  EXPECT_TRUE(run.report_label.empty());
}

TEST(Checked, FasterThanTheFloorIsFlagged) {
  const auto run = time_peer(peer("right", [](Outputs&) {}), {1, 1e18});
  EXPECT_FALSE(run.error_occurred);
  EXPECT_GT(run.counters.at("fraction"), 1);
  EXPECT_EQ(run.report_label, "impossible");
}

TEST(Checked, AWrongElementIsAnErrorAndNoTime) {
  for (const std::int64_t element : {0, 95}) {
    const auto run = time_peer(peer("wrong", [element](Outputs& outputs) {
      outputs.o.store(element, load(outputs.o.view(), element) + 0.5);
    }));
    EXPECT_TRUE(run.error_occurred);
    EXPECT_NE(run.error_message.find("wrong result"), std::string::npos) << run.error_message;
    EXPECT_FALSE(run.counters.contains("tokens/s"));
  }
  const auto zeros = time_peer(peer("zeros", [](Outputs& outputs) {
    for (std::int64_t i = 0; i < outputs.o.size(); ++i) outputs.o.store(i, 0);
  }));
  EXPECT_TRUE(zeros.error_occurred);
}

TEST(Checked, WrongOnlyWhileTimedIsAnErrorToo) {
  int calls = 0;
  const auto run = time_peer(peer("lazy", [&calls](Outputs& outputs) {
    if (++calls > 1) outputs.o.store(5, 1e-3);
  }));
  EXPECT_TRUE(run.error_occurred);
  EXPECT_NE(run.error_message.find("other bits"), std::string::npos);
}

TEST(Checked, WhatAnImplementationThrowsIsAnError) {
  const Implementation thrower =
      peer("thrower", [](Outputs&) { throw Error(ErrorCode::kOutOfMemory, "state"); });
  const auto run = run_once([&](benchmark::State& state) {
    guarded(state, [&] { time_implementation(state, thrower, small_case(), {1, 1}); });
  });
  EXPECT_TRUE(run.error_occurred);
  EXPECT_NE(run.error_message.find("out_of_memory"), std::string::npos);
}

benchmark::BenchmarkReporter::Run rehearse(const GpuKernel& kernel, Dtype state_dtype) {
  const auto timer = open_rehearsal(8 * 1024);
  return run_once(
      [&](benchmark::State& state) {
        time_kernel(state, *timer, kernel, small_case(), state_dtype);
      },
      true);
}

TEST(Rehearsal, TheKernelIsJudgedAndItsTensorsRotate) {
  for (const Dtype state : {Dtype::kF32, Dtype::kBf16}) {
    const auto run = rehearse(recurrent_kernel(), state);
    EXPECT_FALSE(run.error_occurred) << run.error_message;
    EXPECT_GE(run.counters.at("sets") * run.counters.at("min_bytes"), 2 * 8 * 1024);
    EXPECT_GT(run.counters.at("tokens/s"), 0);
  }
  EXPECT_GT(rehearse(recurrent_kernel(), Dtype::kBf16).counters.at("sets"),
            rehearse(recurrent_kernel(), Dtype::kF32).counters.at("sets"));
}

/// The kernel, with one element of what it left changed.
class WrongCall final : public GpuCall {
 public:
  WrongCall(std::unique_ptr<GpuCall> right, bool state) : right_(std::move(right)), state_(state) {}
  void run(cuda::Device& device) override { right_->run(device); }
  Outputs fetch(cuda::Device& device) override {
    Outputs outputs = right_->fetch(device);
    Tensor& tensor = state_ ? *outputs.final_state : outputs.o;
    tensor.store(17, load(tensor.view(), 17) * 1.5 + 0.25);
    return outputs;
  }

 private:
  std::unique_ptr<GpuCall> right_;
  bool state_;
};

TEST(Rehearsal, APlantedWrongKernelIsAnError) {
  for (const bool in_state : {false, true}) {
    GpuKernel wrong = recurrent_kernel();
    wrong.name = "planted";
    wrong.call = [in_state](const harness::KdaCase& c, Dtype state, cuda::Device& device) {
      return std::make_unique<WrongCall>(recurrent_kernel().call(c, state, device), in_state);
    };
    for (const Dtype state : {Dtype::kF32, Dtype::kBf16}) {
      const auto run = rehearse(wrong, state);
      EXPECT_TRUE(run.error_occurred);
      EXPECT_NE(run.error_message.find("wrong result"), std::string::npos);
      EXPECT_FALSE(run.counters.contains("tokens/s"));
    }
  }
}

}  // namespace
}  // namespace kda::bench
