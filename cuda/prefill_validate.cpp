#include "cuda/prefill_validate.hpp"

#include "cuda/argument_checks.hpp"
#include "reference/types/error.hpp"

#include <cstdint>
#include <string>

namespace kda::cuda {
namespace {

constexpr std::uintptr_t kRowAlignment = 16;
constexpr std::uintptr_t kWorkspaceAlignment = 128;

/// Rows of 128 elements that are moved in pieces of 16 bytes.
void check_rows(const char* field, const std::byte* data, Dtype dtype, const Shape& shape,
                const Shape& strides) {
  const std::int64_t unit = static_cast<std::int64_t>(kRowAlignment) / size_of(dtype);
  if (strides.size() != 4 || strides[3] != 1) {
    refuse(ErrorCode::kShapeMismatch, field, "dense rows", "strides " + to_string(strides));
  }
  for (std::size_t d = 0; d < 3; ++d) {
    if (shape[d] > 1 && strides[d] % unit != 0) {
      refuse(ErrorCode::kMisalignedPointer, field, "rows at multiples of 16 bytes",
             "strides " + to_string(strides));
    }
  }
  check_pointer(field, data, kRowAlignment);
}

void check_rows(const char* field, const TensorView& x) {
  check_rows(field, x.data, x.dtype, x.shape, x.strides);
}

void check_output(const PrefillArgs& args, const Semantics& s) {
  const OutputView& o = args.o;
  if (o.shape != s.o_shape()) {
    refuse(ErrorCode::kShapeMismatch, "o", to_string(s.o_shape()), to_string(o.shape));
  }
  if (o.dtype != Dtype::kBf16) {
    refuse(ErrorCode::kDtypeUnsupported, "o", "bf16", name(o.dtype));
  }
  check_rows("o", o.data, o.dtype, o.shape, o.strides);
}

struct States {
  const std::byte* data;
  Dtype dtype;
  const Shape& shape;
  const Shape& strides;
};

void check_states(const char* field, const States& states, const Shape& wanted, ErrorCode code) {
  if (states.dtype != Dtype::kF32) refuse(code, field, "f32", name(states.dtype));
  if (states.shape != wanted) refuse(code, field, to_string(wanted), to_string(states.shape));
  if (states.strides != dense_strides(wanted)) {
    refuse(code, field, "a dense tensor", "strides " + to_string(states.strides));
  }
  check_pointer(field, states.data, kRowAlignment);
}

void check_wanted(const char* field, const std::optional<OutputView>& view, bool wanted,
                  const Shape& shape, ErrorCode code) {
  if (wanted && !view) refuse(ErrorCode::kNullPointer, field, "a buffer, as asked for", "none");
  if (view) check_states(field, {view->data, view->dtype, view->shape, view->strides}, shape, code);
}

}  // namespace

Semantics validate_prefill(const PrefillArgs& args) {
  const Problem& p = args.problem;
  Semantics s = check(Contract::kKdaPrefill, p);
  check_output(args, s);
  if (const auto& in = p.initial_state) {
    check_states("initial_state", {in->data, in->dtype, in->shape, in->strides},
                 s.state_shape(s.N()), ErrorCode::kInitialStateInvalid);
  }
  check_wanted("final_state", args.final_state, s.final_state, s.state_shape(s.N()),
               ErrorCode::kInitialStateInvalid);
  check_wanted("h", args.h, s.chunk_states, s.state_shape(s.num_chunks), ErrorCode::kShapeMismatch);
  check_rows("q", p.q);
  check_rows("k", p.k);
  check_rows("v", p.v);
  check_rows("g", p.g);
  check_input("beta", p.beta);
  if (s.gate != GateForm::kLogDecay) {
    check_gate_parameter("A_log", p.A_log, ErrorCode::kALogInvalid);
    check_gate_parameter("dt_bias", p.dt_bias, ErrorCode::kDtBiasInvalid);
  }
  for (const auto* stage :
       {args.stages.log_decay, args.stages.A, args.stages.Q, args.stages.T, args.stages.U}) {
    if (stage != nullptr) check_pointer("stages", stage, alignof(float));
  }
  return s;
}

void check_prefill_workspace(const PrefillArgs& args, std::size_t needed) {
  if (needed == 0) return;
  check_pointer("workspace", args.workspace, kWorkspaceAlignment);
  if (args.workspace_bytes < needed) {
    refuse(ErrorCode::kWorkspaceTooSmall, "workspace", std::to_string(needed) + " bytes",
           std::to_string(args.workspace_bytes));
  }
}

}  // namespace kda::cuda
