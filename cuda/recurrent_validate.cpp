#include "cuda/recurrent_validate.hpp"

#include "cuda/argument_checks.hpp"
#include "reference/types/error.hpp"

#include <cstdint>
#include <string>
#include <unordered_set>

namespace kda::cuda {
namespace {

constexpr std::uintptr_t kStateAlignment = 16;

/// The contract knows f32 states only; storage in bf16 is this interface's own.
Semantics check_contract(const RecurrentArgs& args) {
  if (args.problem.initial_state && args.problem.initial_state->dtype == Dtype::kBf16) {
    Problem in_f32 = args.problem;
    in_f32.initial_state->dtype = Dtype::kF32;
    return check(args.contract, in_f32);
  }
  return check(args.contract, args.problem);
}

void check_output(const RecurrentArgs& args, const Semantics& s) {
  const OutputView& o = args.o;
  if (o.shape != s.o_shape() || o.strides.size() != 4) {
    refuse(ErrorCode::kShapeMismatch, "o", to_string(s.o_shape()), to_string(o.shape));
  }
  if (o.dtype != args.problem.v.dtype) {
    refuse(ErrorCode::kDtypeUnsupported, "o", name(args.problem.v.dtype), name(o.dtype));
  }
  if (num_elements(o.shape) != 0) {
    check_pointer("o", o.data, static_cast<std::uintptr_t>(size_of(o.dtype)));
  }
}

struct StateParts {
  const std::byte* data;
  Dtype dtype;
  const Shape& shape;
  const Shape& strides;
};

void check_state(const char* field, const StateParts& state, const Shape& wanted) {
  const ErrorCode code = ErrorCode::kInitialStateInvalid;
  if (state.dtype != Dtype::kF32 && state.dtype != Dtype::kBf16) {
    refuse(code, field, "f32 or bf16", name(state.dtype));
  }
  if (state.shape != wanted) refuse(code, field, to_string(wanted), to_string(state.shape));
  if (state.strides.size() != 4 || (state.strides[3] != 1 && wanted[3] > 1)) {
    refuse(code, field, "dense rows", "strides " + to_string(state.strides));
  }
  if (num_elements(wanted) != 0) check_pointer(field, state.data, kStateAlignment);
}

void check_separate_states(const RecurrentArgs& args, const Semantics& s) {
  const auto& in = args.problem.initial_state;
  const auto& out = args.final_state;
  if (in) {
    check_state("initial_state", {in->data, in->dtype, in->shape, in->strides},
                s.state_shape(s.N()));
  }
  if (s.final_state && !out) {
    refuse(ErrorCode::kNullPointer, "final_state", "a buffer with output_final_state", "none");
  }
  if (out) {
    check_state("final_state", {out->data, out->dtype, out->shape, out->strides},
                s.state_shape(s.N()));
  }
  if (in && out && in->dtype != out->dtype) {
    refuse(ErrorCode::kInitialStateInvalid, "final_state",
           std::string("the dtype of initial_state, ") + name(in->dtype), name(out->dtype));
  }
}

void check_pool(const RecurrentArgs& args, const Semantics& s) {
  if (args.problem.initial_state || args.final_state) {
    refuse(ErrorCode::kInitialStateInvalid, "pool", "no initial_state or final_state beside it",
           "both");
  }
  const OutputView& pool = *args.pool;
  const std::int64_t slots = pool.shape.empty() ? 0 : pool.shape[0];
  check_state("pool", {pool.data, pool.dtype, pool.shape, pool.strides}, s.state_shape(slots));
  if (!args.slots && slots < s.N()) {
    refuse(ErrorCode::kStateCountMismatch, "pool", std::to_string(s.N()) + " slots without slots",
           std::to_string(slots));
  }
}

void check_slot_list(const RecurrentArgs& args, const Semantics& s) {
  if (!args.slots) return;
  if (!args.pool) refuse(ErrorCode::kStateCountMismatch, "slots", "a pool to index", "none");
  const TensorView& slots = *args.slots;
  const bool integers = slots.dtype == Dtype::kI32 || slots.dtype == Dtype::kI64;
  if (!integers || slots.shape != Shape{s.N()} || slots.strides.size() != 1) {
    refuse(ErrorCode::kStateCountMismatch, "slots", "i32 or i64 (" + std::to_string(s.N()) + ",)",
           std::string(name(slots.dtype)) + " " + to_string(slots.shape));
  }
  check_input("slots", slots);
}

}  // namespace

std::optional<std::string> recurrent_unsupported(const Problem& problem) {
  if (problem.return_intermediate_states) return "the recurrent kernel has no chunk states (h)";
  return std::nullopt;
}

Semantics validate_recurrent(const RecurrentArgs& args) {
  Semantics s = check_contract(args);
  if (const auto reason = recurrent_unsupported(args.problem)) {
    throw Error(ErrorCode::kImplementationUnsupported, *reason);
  }
  const Problem& p = args.problem;
  check_output(args, s);
  if (args.pool) {
    check_pool(args, s);
  } else {
    check_separate_states(args, s);
  }
  check_slot_list(args, s);
  check_input("q", p.q);
  check_input("k", p.k);
  check_input("v", p.v);
  check_input("g", p.g);
  check_input("beta", p.beta);
  if (s.gate != GateForm::kLogDecay) {
    check_gate_parameter("A_log", p.A_log, ErrorCode::kALogInvalid);
    check_gate_parameter("dt_bias", p.dt_bias, ErrorCode::kDtBiasInvalid);
  }
  return s;
}

std::vector<std::int64_t> checked_slots(const RecurrentArgs& args, const Semantics& s) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(s.N()));
  std::unordered_set<std::int64_t> used;
  for (std::int64_t n = 0; n < s.N(); ++n) {
    const std::int64_t slot = args.slots ? load_int(*args.slots, n * args.slots->strides[0]) : n;
    slots[static_cast<std::size_t>(n)] = slot;
    if (!args.slots) continue;
    const std::string field = "slots[" + std::to_string(n) + "]";
    const std::int64_t count = args.pool->shape[0];
    if (slot < -1 || slot >= count) {
      refuse(ErrorCode::kSlotIndexInvalid, field, "-1 to " + std::to_string(count - 1),
             std::to_string(slot));
    }
    if (slot >= 0 && !used.insert(slot).second) {
      refuse(ErrorCode::kSlotDuplicate, field, "a slot of its own", std::to_string(slot));
    }
  }
  return slots;
}

void check_workspace(const RecurrentArgs& args, std::size_t needed) {
  if (needed == 0) return;
  check_pointer("workspace", args.workspace, alignof(SequenceEntry));
  if (args.workspace_bytes < needed) {
    refuse(ErrorCode::kWorkspaceTooSmall, "workspace", std::to_string(needed) + " bytes",
           std::to_string(args.workspace_bytes));
  }
}

}  // namespace kda::cuda
