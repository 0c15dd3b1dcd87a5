#include "cuda/recurrent.hpp"

#include "cuda/recurrent_validate.hpp"

#include <utility>

namespace kda::cuda {
namespace {

using device::Global;

TokenTensor<const std::byte> tokens(const TensorView& x) {
  const std::int64_t d = x.strides.size() == 4 ? x.strides[3] : 0;
  return {{x.data}, x.dtype, x.strides[0], x.strides[1], x.strides[2], d};
}

/// Whether every row starts at a multiple of 16 bytes; the base does.
bool rows_aligned(Dtype dtype, const Shape& strides) {
  const std::int64_t unit = 16 / size_of(dtype);
  return strides[0] % unit == 0 && strides[1] % unit == 0 && strides[2] % unit == 0;
}

StateTensor<std::byte> states(const OutputView& x) {
  return {{x.data}, x.strides[0], x.strides[1], x.strides[2], rows_aligned(x.dtype, x.strides)};
}

StateTensor<const std::byte> as_input(const StateTensor<std::byte>& x) {
  return {x.data, x.slot, x.head, x.row, x.vectors};
}

RecurrentExtents extents(const RecurrentArgs& args, const Semantics& s) {
  Dtype state = Dtype::kF32;
  if (args.problem.initial_state) state = args.problem.initial_state->dtype;
  if (args.final_state) state = args.final_state->dtype;
  if (args.pool) state = args.pool->dtype;
  return {s.N(),
          s.HV,
          s.K,
          s.V,
          s.state_layout,
          state,
          args.problem.cu_seqlens.has_value() || args.slots.has_value()};
}

void fill_states(RecurrentParams& params, const RecurrentArgs& args) {
  if (args.pool) {
    params.state_out = states(*args.pool);
    params.state_in = as_input(params.state_out);
    return;
  }
  if (args.problem.initial_state) {
    const TensorView& in = *args.problem.initial_state;
    params.state_in = {
        {in.data}, in.strides[0], in.strides[1], in.strides[2], rows_aligned(in.dtype, in.strides)};
  }
  if (args.final_state) params.state_out = states(*args.final_state);
}

void fill_gate(RecurrentParams& params, const Problem& p, const Semantics& s) {
  params.gate = s.gate;
  params.lower_bound = static_cast<float>(s.lower_bound);
  if (s.gate == GateForm::kLogDecay) return;
  // The contract has made sure of f32.
  if (p.A_log) params.A_log = Global<const std::byte>{p.A_log->data}.as<float>();
  if (p.dt_bias) params.dt_bias = Global<const std::byte>{p.dt_bias->data}.as<float>();
}

}  // namespace

RecurrentPlan plan_recurrent(const RecurrentArgs& args) {
  const Semantics s = validate_recurrent(args);
  const std::vector<std::int64_t> slots = checked_slots(args, s);
  const Problem& p = args.problem;
  RecurrentPlan plan = plan_recurrent(extents(args, s));
  if (plan.workspace_bytes != 0) {
    for (std::size_t n = 0; n < slots.size(); ++n) {
      const Sequence& sequence = s.sequences[n];
      plan.table.push_back({sequence.b, sequence.begin, sequence.length(), slots[n]});
    }
  }
  RecurrentParams& params = plan.params;
  params.q = tokens(p.q);
  params.k = tokens(p.k);
  params.v = tokens(p.v);
  params.g = tokens(p.g);
  params.beta = tokens(p.beta);
  params.o = {{args.o.data},     args.o.dtype,      args.o.strides[0],
              args.o.strides[1], args.o.strides[2], args.o.strides[3]};
  fill_states(params, args);
  fill_gate(params, p, s);
  params.num_blocks = plan.num_blocks;
  params.T = s.T;
  params.HV = static_cast<int>(s.HV);
  params.K = static_cast<int>(s.K);
  params.V = static_cast<int>(s.V);
  params.v_blocks = plan.v_blocks;
  params.heads_per_group = static_cast<int>(s.HV / s.H);
  params.beta_form = s.beta;
  params.l2norm = s.qk_norm == QkNorm::kL2;
  params.scale = static_cast<float>(s.scale);
  return plan;
}

RecurrentPlan recurrent(const RecurrentArgs& args, Runtime& runtime) {
  RecurrentPlan plan = plan_recurrent(args);
  check_workspace(args, plan.workspace_bytes);
  if (plan.num_blocks == 0) return plan;
  if (plan.workspace_bytes != 0) {
    runtime.copy_to_device(args.workspace, plan.table.data(), plan.workspace_bytes);
    plan.params.table = Global<std::byte>{args.workspace}.as<SequenceEntry>();
  }
  runtime.launch(recurrent_kernel_forms(plan.variant), plan.shape, &plan.params);
  return plan;
}

}  // namespace kda::cuda
