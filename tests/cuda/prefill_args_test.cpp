#include "cuda/prefill.hpp"
#include "reference/types/error.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <functional>
#include <memory>
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

/// A call that is accepted, for tests to spoil. Never launched: its memory is the host's.
class Call {
 public:
  Call()
      : inputs_(tests::random_inputs({.B = 2, .T = 70, .H = 2, .HV = 2, .K = 128, .V = 128}, 3)) {
    inputs_.q = tests::uniform(Dtype::kBf16, inputs_.q.shape(), 4, -1, 1);
    inputs_.k = tests::uniform(Dtype::kBf16, inputs_.k.shape(), 5, -1, 1);
    inputs_.v = tests::uniform(Dtype::kBf16, inputs_.v.shape(), 6, -1, 1);
    inputs_.g = tests::uniform(Dtype::kBf16, inputs_.g.shape(), 7, -1, 0);
    inputs_.beta = tests::uniform(Dtype::kBf16, inputs_.beta.shape(), 8, 0, 1);
    inputs_.options.output_final_state = true;
    inputs_.options.return_intermediate_states = true;
    args.problem = inputs_.problem();
    const Semantics s = check(Contract::kKdaPrefill, args.problem);
    args.o = output(Dtype::kBf16, s.o_shape());
    args.final_state = output(Dtype::kF32, s.state_shape(s.N()));
    args.h = output(Dtype::kF32, s.state_shape(s.num_chunks));
    args.workspace_bytes = plan_prefill(args).workspace.bytes;
    args.workspace = buffer(args.workspace_bytes);
  }

  std::byte* buffer(std::size_t bytes) {
    memory_.emplace_back(new std::byte[bytes + 256]);
    std::byte* at = memory_.back().get();
    while (reinterpret_cast<std::uintptr_t>(at) % 128 != 0) ++at;
    return at;
  }
  OutputView output(Dtype dtype, const Shape& shape) {
    const auto bytes = static_cast<std::size_t>(num_elements(shape) * size_of(dtype));
    return {buffer(bytes), dtype, shape, dense_strides(shape)};
  }

  PrefillArgs args;

 private:
  KdaInputs inputs_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

void expect_refused(ErrorCode code, const std::function<void(PrefillArgs&)>& spoil) {
  Call call;
  spoil(call.args);
  NotedRuntime runtime;
  try {
    static_cast<void>(prefill(call.args, runtime));
    ADD_FAILURE() << "accepted, wanted " << name(code);
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
  }
  EXPECT_TRUE(runtime.calls.empty()) << runtime.calls.front();
}

TEST(PrefillArgs, AcceptsTheCallThatOthersSpoil) {
  Call call;
  NotedRuntime runtime;
  static_cast<void>(prefill(call.args, runtime));
  EXPECT_EQ(runtime.calls,
            (std::vector<std::string>{"copy 64", "copy 64", "launch prefill_factors 8",
                                      "launch prefill_chain 16"}));
  call.args.options.chunks_per_segment = 1;
  call.args.workspace_bytes = plan_prefill(call.args).workspace.bytes;
  NotedRuntime segments;
  static_cast<void>(prefill(call.args, segments));
  EXPECT_EQ(segments.calls.size(), 2U + 4 * 2);
}

TEST(PrefillArgs, ContractComesFirst) {
  expect_refused(ErrorCode::kScaleInvalid, [](PrefillArgs& a) {
    a.problem.scale = 1.0 / 0.0;
    a.o.data = nullptr;
  });
  expect_refused(ErrorCode::kChunkSizeUnsupported, [](PrefillArgs& a) {
    a.problem.chunk_size = 32;
    a.workspace = nullptr;
  });
}

TEST(PrefillArgs, Workspace) {
  expect_refused(ErrorCode::kWorkspaceTooSmall, [](PrefillArgs& a) { --a.workspace_bytes; });
  expect_refused(ErrorCode::kWorkspaceTooSmall, [](PrefillArgs& a) { a.workspace_bytes = 0; });
  expect_refused(ErrorCode::kNullPointer, [](PrefillArgs& a) { a.workspace = nullptr; });
  expect_refused(ErrorCode::kMisalignedPointer, [](PrefillArgs& a) { a.workspace += 64; });
}

using Spoil = std::function<void(PrefillArgs&)>;

TEST(PrefillArgs, NullPointers) {
  for (const Spoil& spoil : {Spoil([](PrefillArgs& a) { a.problem.q.data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.problem.k.data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.problem.v.data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.problem.g.data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.problem.beta.data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.o.data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.final_state->data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.h->data = nullptr; }),
                             Spoil([](PrefillArgs& a) { a.final_state.reset(); }),
                             Spoil([](PrefillArgs& a) { a.h.reset(); })}) {
    expect_refused(ErrorCode::kNullPointer, spoil);
  }
}

TEST(PrefillArgs, MisalignedPointers) {
  for (const Spoil& spoil : {Spoil([](PrefillArgs& a) { a.problem.q.data += 8; }),
                             Spoil([](PrefillArgs& a) { a.problem.beta.data += 1; }),
                             Spoil([](PrefillArgs& a) { a.o.data += 2; }),
                             Spoil([](PrefillArgs& a) { a.final_state->data += 4; }),
                             Spoil([](PrefillArgs& a) { a.problem.v.strides[2] += 4; }),
                             Spoil([](PrefillArgs& a) { a.o.strides[1] += 1; })}) {
    expect_refused(ErrorCode::kMisalignedPointer, spoil);
  }
}

TEST(PrefillArgs, ShapesAndDtypes) {
  expect_refused(ErrorCode::kShapeMismatch, [](PrefillArgs& a) { a.o.shape[1] = 71; });
  expect_refused(ErrorCode::kDtypeUnsupported, [](PrefillArgs& a) { a.o.dtype = Dtype::kF32; });
  expect_refused(ErrorCode::kShapeMismatch, [](PrefillArgs& a) { a.problem.k.strides[3] = 2; });
  expect_refused(ErrorCode::kShapeMismatch, [](PrefillArgs& a) { a.h->shape[0] = 3; });
  const auto code = ErrorCode::kInitialStateInvalid;
  expect_refused(code, [](PrefillArgs& a) { a.final_state->dtype = Dtype::kBf16; });
  expect_refused(code, [](PrefillArgs& a) { a.final_state->strides[0] += 4; });
  expect_refused(ErrorCode::kShapeMismatch, [](PrefillArgs& a) { a.options.v_columns = 16; });
}

TEST(PrefillArgs, RuntimeFailuresComeThrough) {
  for (const char* at : {"copy", "launch prefill_factors", "launch prefill_chain"}) {
    Call call;
    NotedRuntime runtime(at);
    try {
      static_cast<void>(prefill(call.args, runtime));
      FAIL() << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCudaRuntime);
    }
    EXPECT_EQ(runtime.calls.back().find(at), 0U) << "nothing is tried after a failure";
  }
}

}  // namespace
}  // namespace kda::cuda
