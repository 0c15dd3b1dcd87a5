#include "reference/types/error.hpp"
#include "tests/cuda/recurrent_call.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// What is refused, with which code, and that nothing was asked of the runtime by then.

namespace kda::cuda {
namespace {

using tests::KdaInputs;

/// Notes every call; fails at the one it is told to.
class NotedRuntime final : public Runtime {
 public:
  explicit NotedRuntime(std::string fails_at = "") : fails_at_(std::move(fails_at)) {}

  void copy_to_device(void*, const void*, std::size_t bytes) override {
    note("copy " + std::to_string(bytes));
  }
  void launch(const KernelForms& kernel, const LaunchShape& shape, void*) override {
    note("launch " + std::string(kernel.name) + " " + std::to_string(shape.grid.x));
  }
  std::vector<std::string> calls;

 private:
  void note(const std::string& call) {
    calls.push_back(call);
    if (!fails_at_.empty() && call.find(fails_at_) == 0) {
      throw Error(ErrorCode::kCudaRuntime, call);
    }
  }
  std::string fails_at_;
};

KdaInputs inputs() {
  KdaInputs made = tests::random_inputs({.B = 2, .T = 3, .H = 1, .HV = 2, .K = 8, .V = 8}, 3);
  made.options.return_intermediate_states = false;
  made.options.output_final_state = false;
  return made;
}

void expect_refused(ErrorCode code, const RecurrentArgs& args) {
  NotedRuntime runtime;
  try {
    static_cast<void>(recurrent(args, runtime));
    ADD_FAILURE() << "accepted, wanted " << name(code);
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
  }
  EXPECT_TRUE(runtime.calls.empty()) << runtime.calls.front();
}

/// A call with a pool of 4 and slots {2, 0}, changed by `spoil`.
void expect_refused(ErrorCode code, const std::function<void(RecurrentCall&)>& spoil) {
  RecurrentCall call(inputs());
  call.make_pool(4, Dtype::kF32);
  call.set_slots({2, 0});
  spoil(call);
  expect_refused(code, call.args);
}

// The contract knows f32 alone; storage in bf16 is the interface's own, and all else holds for it.
TEST(RecurrentArgs, AnInitialStateInBf16IsHeldToTheContractToo) {
  KdaInputs wrong = inputs();
  wrong.initial_state = tests::uniform(Dtype::kBf16, {2, 2, 8, 7}, 3, -1, 1);
  RecurrentCall call(inputs());
  call.args.problem.initial_state = wrong.initial_state->view();
  expect_refused(ErrorCode::kInitialStateInvalid, call.args);
}

TEST(RecurrentArgs, AcceptsTheCallThatOthersSpoil) {
  RecurrentCall call(inputs());
  call.make_pool(4, Dtype::kF32);
  call.set_slots({2, 0});
  NotedRuntime runtime;
  const RecurrentPlan plan = recurrent(call.args, runtime);
  EXPECT_EQ(runtime.calls, (std::vector<std::string>{"copy 64", "launch recurrent 4"}));
  EXPECT_EQ(plan.workspace_bytes, 64U);
}

TEST(RecurrentArgs, ContractComesFirst) {
  expect_refused(ErrorCode::kScaleInvalid, [](RecurrentCall& c) {
    c.args.problem.scale = 1.0 / 0.0;
    c.args.o.data = nullptr;
    c.set_slots({9, 9});
  });
  expect_refused(ErrorCode::kBetaShape, [](RecurrentCall& c) {
    c.args.problem.beta.shape = {2, 3, 1};
  });
  expect_refused(ErrorCode::kImplementationUnsupported,
                 [](RecurrentCall& c) { c.args.problem.return_intermediate_states = true; });
}

TEST(RecurrentArgs, Slots) {
  for (const std::vector<std::int64_t>& bad :
       {std::vector<std::int64_t>{4, 0}, {0, -2}, {0, 1LL << 40}}) {
    expect_refused(ErrorCode::kSlotIndexInvalid, [&](RecurrentCall& c) { c.set_slots(bad); });
  }
  expect_refused(ErrorCode::kSlotDuplicate, [](RecurrentCall& c) { c.set_slots({3, 3}); });
  expect_refused(ErrorCode::kStateCountMismatch, [](RecurrentCall& c) { c.set_slots({3}); });
  expect_refused(ErrorCode::kStateCountMismatch,
                 [](RecurrentCall& c) { c.args.slots->dtype = Dtype::kF32; });
  expect_refused(ErrorCode::kStateCountMismatch, [](RecurrentCall& c) { c.args.pool.reset(); });
  expect_refused(ErrorCode::kStateCountMismatch, [](RecurrentCall& c) {
    c.args.slots.reset();
    c.args.pool->shape[0] = 1;
  });
  expect_refused(ErrorCode::kNullPointer, [](RecurrentCall& c) { c.args.slots->data = nullptr; });
}

TEST(RecurrentArgs, TwoSlotsOfMinusOneAreNoDuplicates) {
  RecurrentCall call(inputs());
  call.make_pool(4, Dtype::kF32);
  call.set_slots({-1, -1});
  NotedRuntime runtime;
  static_cast<void>(recurrent(call.args, runtime));
  EXPECT_EQ(runtime.calls.size(), 2U);
}

TEST(RecurrentArgs, Workspace) {
  expect_refused(ErrorCode::kWorkspaceTooSmall,
                 [](RecurrentCall& c) { c.args.workspace_bytes = 63; });
  expect_refused(ErrorCode::kNullPointer, [](RecurrentCall& c) { c.args.workspace = nullptr; });
  expect_refused(ErrorCode::kMisalignedPointer, [](RecurrentCall& c) { c.args.workspace += 8; });
}

TEST(RecurrentArgs, NullPointers) {
  using Spoil = std::function<void(RecurrentCall&)>;
  for (const Spoil& spoil : {Spoil([](RecurrentCall& c) { c.args.problem.q.data = nullptr; }),
                             Spoil([](RecurrentCall& c) { c.args.problem.k.data = nullptr; }),
                             Spoil([](RecurrentCall& c) { c.args.problem.v.data = nullptr; }),
                             Spoil([](RecurrentCall& c) { c.args.problem.g.data = nullptr; }),
                             Spoil([](RecurrentCall& c) { c.args.problem.beta.data = nullptr; }),
                             Spoil([](RecurrentCall& c) { c.args.o.data = nullptr; }),
                             Spoil([](RecurrentCall& c) { c.args.pool->data = nullptr; })}) {
    expect_refused(ErrorCode::kNullPointer, spoil);
  }
}

TEST(RecurrentArgs, MisalignedPointers) {
  using Spoil = std::function<void(RecurrentCall&)>;
  for (const Spoil& spoil : {Spoil([](RecurrentCall& c) { c.args.problem.q.data += 2; }),
                             Spoil([](RecurrentCall& c) { c.args.problem.beta.data += 1; }),
                             Spoil([](RecurrentCall& c) { c.args.o.data += 3; }),
                             Spoil([](RecurrentCall& c) { c.args.pool->data += 8; })}) {
    expect_refused(ErrorCode::kMisalignedPointer, spoil);
  }
}

TEST(RecurrentArgs, Outputs) {
  expect_refused(ErrorCode::kShapeMismatch, [](RecurrentCall& c) { c.args.o.shape[1] = 4; });
  expect_refused(ErrorCode::kDtypeUnsupported,
                 [](RecurrentCall& c) { c.args.o.dtype = Dtype::kBf16; });
}

TEST(RecurrentArgs, States) {
  const auto code = ErrorCode::kInitialStateInvalid;
  expect_refused(code, [](RecurrentCall& c) { c.args.pool->shape[2] = 9; });
  expect_refused(code, [](RecurrentCall& c) { c.args.pool->dtype = Dtype::kF16; });
  expect_refused(code, [](RecurrentCall& c) { c.args.pool->strides[3] = 2; });
  expect_refused(code, [](RecurrentCall& c) { c.args.final_state = c.args.pool; });
  expect_refused(ErrorCode::kNullPointer, [](RecurrentCall& c) {
    c.args.pool.reset();
    c.args.slots.reset();
    c.args.problem.output_final_state = true;
  });
  expect_refused(code, [](RecurrentCall& c) {  // f32 in, bf16 out
    const OutputView pool = *c.args.pool;
    const Shape two = {2, 2, 8, 8};
    c.args.pool.reset();
    c.args.slots.reset();
    c.args.problem.initial_state = TensorView{pool.data, Dtype::kF32, two, dense_strides(two)};
    c.args.final_state = OutputView{pool.data, Dtype::kBf16, two, dense_strides(two)};
  });
}

TEST(RecurrentArgs, GateParametersAreDense) {
  KdaInputs gated = inputs();
  gated.options.use_gate_in_kernel = true;
  gated.A_log = tests::uniform(Dtype::kF32, {2}, 4, -1, 1);
  gated.dt_bias = tests::uniform(Dtype::kF32, {2, 8}, 5, -1, 1);
  RecurrentCall call(gated);
  RecurrentArgs args = call.args;
  args.problem.A_log->strides[0] = 2;
  expect_refused(ErrorCode::kALogInvalid, args);
  args = call.args;
  args.problem.dt_bias->strides[0] = 9;
  expect_refused(ErrorCode::kDtBiasInvalid, args);
  args = call.args;
  args.problem.dt_bias->data = nullptr;
  expect_refused(ErrorCode::kNullPointer, args);
}

TEST(RecurrentArgs, NoOutputIsTouchedByARefusedCall) {
  RecurrentCall call(inputs());
  call.make_pool(4, Dtype::kF32);
  const Tensor pool = call.pool();
  const Tensor o = call.o();
  call.set_slots({3, 3});
  EXPECT_THROW(call.run(), Error);
  EXPECT_TRUE(tests::same_bits(call.pool(), pool));
  EXPECT_TRUE(tests::same_bits(call.o(), o));
}

TEST(RecurrentArgs, RuntimeFailuresComeThrough) {
  RecurrentCall call(inputs());
  call.make_pool(4, Dtype::kF32);
  call.set_slots({2, 0});
  for (const char* at : {"copy", "launch"}) {
    NotedRuntime runtime(at);
    try {
      static_cast<void>(recurrent(call.args, runtime));
      FAIL() << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCudaRuntime);
    }
    EXPECT_EQ(runtime.calls.back().find(at), 0U) << "nothing is tried after a failure";
  }
}

TEST(RecurrentArgs, GpuIsThereOrSaysWhyNot) {
  try {
    EXPECT_NE(open_gpu(), nullptr);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeviceUnavailable) << error.what();
    EXPECT_EQ(error.message().find("gpu: "), 0U);
  }
}

}  // namespace
}  // namespace kda::cuda
