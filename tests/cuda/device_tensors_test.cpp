#include "cuda/device_tensors.hpp"

#include "cuda/prefill.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

// Tensors on their way to a device and back.

namespace kda::cuda {
namespace {

std::unique_ptr<Device> device() { return open_executor({}, nullptr); }

TEST(DeviceTensors, AViewOfAnyStridesBecomesADenseCopy) {
  const std::array<float, 6> rows{1, 2, 3, 4, 5, 6};
  const auto* data = reinterpret_cast<const std::byte*>(rows.data());
  const TensorView transposed{data, Dtype::kF32, {3, 2}, {1, 3}};
  const std::unique_ptr<Device> executor = device();
  const TensorView moved = on_device("x", transposed, *executor);
  EXPECT_EQ(moved.shape, (Shape{3, 2}));
  EXPECT_EQ(moved.strides, (Shape{2, 1}));
  std::array<float, 6> back{};
  executor->copy_to_host(back.data(), moved.data, sizeof back);
  EXPECT_EQ(back, (std::array<float, 6>{1, 4, 2, 5, 3, 6}));
}

TEST(DeviceTensors, NothingAndAbsentOnesStayThat) {
  const std::unique_ptr<Device> executor = device();
  const TensorView none{nullptr, Dtype::kF32, {0, 2}, {2, 1}};
  EXPECT_EQ(on_device("x", none, *executor).size(), 0);
  std::optional<TensorView> absent;
  move_optional("x", absent, *executor);
  EXPECT_FALSE(absent);
}

TEST(DeviceTensors, APrefillReturnsTheOutputsThatWereAskedFor) {
  tests::KdaInputs inputs =
      tests::zeros({.B = 1, .T = 1, .H = 1, .HV = 1, .K = 128, .V = 128}, Dtype::kBf16);
  inputs.v = tests::uniform(Dtype::kBf16, inputs.v.shape(), 3, -1, 1);
  for (const bool wanted : {false, true}) {
    inputs.options.output_final_state = wanted;
    inputs.options.return_intermediate_states = wanted;
    const Outputs outputs = run_prefill(inputs.problem(), {}, *device());
    EXPECT_EQ(outputs.o.shape(), (Shape{1, 1, 1, 128}));
    ASSERT_EQ(outputs.final_state.has_value(), wanted);
    ASSERT_EQ(outputs.h.has_value(), wanted);
    if (!wanted) continue;
    EXPECT_EQ(outputs.final_state->shape(), (Shape{1, 1, 128, 128}));
    EXPECT_EQ(outputs.h->shape(), (Shape{1, 1, 128, 128}));
    for (const double value : to_f64(outputs.final_state->view())) ASSERT_EQ(value, 0);  // k = 0
  }
}

TEST(DeviceTensors, AGatedPrefillTakesItsParametersAndReturnsItsStages) {
  tests::KdaInputs inputs =
      tests::zeros({.B = 1, .T = 1, .H = 1, .HV = 1, .K = 128, .V = 128}, Dtype::kBf16);
  inputs.g = tests::uniform(Dtype::kBf16, inputs.g.shape(), 6, -1, 1);
  inputs.A_log = tests::uniform(Dtype::kF32, {1}, 3, 0, 1);
  inputs.dt_bias = tests::uniform(Dtype::kF32, {128}, 4, 0, 1);
  inputs.initial_state = tests::uniform(Dtype::kF32, {1, 1, 128, 128}, 5, 0.5, 1);
  inputs.options.use_gate_in_kernel = true;
  inputs.options.output_final_state = true;
  PrefillTensors stages;
  const Outputs outputs = run_prefill_cpu(inputs.problem(), {}, {}, nullptr, &stages);
  EXPECT_EQ(stages.log_decay.shape(), (Shape{1, 1, 64, 128}));
  EXPECT_EQ(stages.A.shape(), (Shape{1, 1, 64, 64}));
  EXPECT_EQ(stages.U.shape(), (Shape{1, 1, 64, 128}));
  // k and v are 0: the state only decays.
  const std::vector<double> before = to_f64(inputs.initial_state->view());
  const std::vector<double> after = to_f64(outputs.final_state->view());
  for (std::size_t i = 0; i < after.size(); ++i) {
    ASSERT_GT(after[i], 0);
    ASSERT_LT(after[i], before[i]);
  }
}

}  // namespace
}  // namespace kda::cuda
