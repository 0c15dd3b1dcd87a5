#include "cuda/prefill.hpp"

#include "cuda/prefill_validate.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kda::cuda {
namespace {

using device::Global;

RowTensor<const std::byte> rows(const TensorView& x) {
  return {{x.data}, x.strides[0], x.strides[1], x.strides[2]};
}

Global<const float> floats(const std::optional<TensorView>& x) {
  return x ? Global<const std::byte>{x->data}.as<float>() : Global<const float>{};
}

Global<float> floats(const std::optional<OutputView>& x) {
  return x ? Global<std::byte>{x->data}.as<float>() : Global<float>{};
}

PrefillParams call_params(const PrefillArgs& args, const Semantics& s) {
  const Problem& p = args.problem;
  PrefillParams params{};
  params.q = rows(p.q);
  params.k = rows(p.k);
  params.v = rows(p.v);
  params.g = rows(p.g);
  params.beta = rows(p.beta);
  params.o = {{args.o.data}, args.o.strides[0], args.o.strides[1], args.o.strides[2]};
  if (s.gate != GateForm::kLogDecay) {
    params.A_log = floats(p.A_log);
    params.dt_bias = floats(p.dt_bias);
  }
  params.initial_state = floats(p.initial_state);
  params.final_state = floats(args.final_state);
  params.h = floats(args.h);
  params.stages = {
      {args.stages.log_decay}, {args.stages.A}, {args.stages.Q}, {args.stages.T}, {args.stages.U}};
  params.HV = static_cast<int>(s.HV);
  params.gate = s.gate;
  params.beta_form = s.beta;
  params.g_f32 = p.g.dtype == Dtype::kF32;
  params.beta_f32 = p.beta.dtype == Dtype::kF32;
  params.l2norm = s.qk_norm == QkNorm::kL2;
  params.state_v_first = s.state_layout == StateLayout::kVK;
  params.scale = static_cast<float>(s.scale);
  params.lower_bound = static_cast<float>(s.lower_bound);
  return params;
}

/// A place in the workspace.
template <class T>
Global<T> place(const PrefillArgs& args, std::size_t offset) {
  return Global<std::byte>{args.workspace + offset}.as<T>();
}

void launch_segment(const PrefillArgs& args, PrefillPlan& plan, std::size_t index,
                    Runtime& runtime) {
  const PrefillSegment& segment = plan.segments[index];
  const PrefillWorkspace& w = plan.workspace;
  PrefillParams& params = plan.params;
  params.blobs = place<std::byte>(args, w.blobs);
  params.chunks = place<ChunkEntry>(args, w.chunks) + segment.first_chunk;
  params.runs = place<RunEntry>(args, w.runs) + segment.first_run;
  params.first_chunk = segment.first_chunk;
  const std::int64_t carry = plan.HV * kPrefillDim * kPrefillDim;
  const auto carries = place<float>(args, w.carries);
  params.carry_in = carries + static_cast<std::int64_t>(index % 2) * carry;
  params.carry_out = carries + static_cast<std::int64_t>((index + 1) % 2) * carry;
  params.v_blocks = kPrefillDim / plan.v_columns;
  params.num_blocks = segment.chunks * plan.HV;
  runtime.launch(prefill_factors_forms(plan.policy), segment.factors, &params);
  params.num_blocks = segment.runs * plan.HV * params.v_blocks;
  runtime.launch(prefill_chain_forms(plan.policy, plan.v_columns), segment.chain, &params);
}

}  // namespace

PrefillPlan plan_prefill(const PrefillArgs& args) {
  const Semantics s = validate_prefill(args);
  PrefillPlan plan = plan_prefill({s.HV, s.sequences}, args.options);
  plan.params = call_params(args, s);
  return plan;
}

PrefillPlan prefill(const PrefillArgs& args, Runtime& runtime) {
  PrefillPlan plan = plan_prefill(args);
  check_prefill_workspace(args, plan.workspace.bytes);
  if (plan.segments.empty()) return plan;
  const PrefillWorkspace& w = plan.workspace;
  runtime.copy_to_device(args.workspace + w.chunks, plan.chunks.data(),
                         plan.chunks.size() * sizeof(ChunkEntry));
  runtime.copy_to_device(args.workspace + w.runs, plan.runs.data(),
                         plan.runs.size() * sizeof(RunEntry));
  for (std::size_t i = 0; i < plan.segments.size(); ++i) launch_segment(args, plan, i, runtime);
  return plan;
}

std::size_t prefill_workspace_bytes(std::int64_t N, std::int64_t T, std::int64_t HV,
                                    const PrefillOptions& options) {
  std::vector<Sequence> sequences;
  for (std::int64_t n = 0; n < N; ++n) sequences.push_back({n, 0, T, 0});
  return plan_prefill({HV, sequences}, options).workspace.bytes;
}

}  // namespace kda::cuda
