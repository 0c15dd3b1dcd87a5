#include "harness/plan/plan_text.hpp"

#include "cuda/prefill_plan.hpp"
#include "cuda/recurrent_plan.hpp"
#include "harness/plan/cost_model.hpp"
#include "reference/types/contract.hpp"

#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr double kMega = 1e-6;
constexpr double kMilli = 1e3;

TensorView unfilled(Dtype dtype, Shape shape) {
  const Shape strides = dense_strides(shape);
  return {nullptr, dtype, std::move(shape), strides};
}

/// The call of a case line with shapes and dtypes only; `bounds` is what cu_seqlens views.
Problem unfilled_call(const CaseLine& line, std::vector<std::int64_t>& bounds) {
  Problem p = call_options(line);
  p.q = p.k = unfilled(line.dtype, {line.B, line.T, line.H, line.K});
  p.v = unfilled(line.dtype, {line.B, line.T, line.HV, line.V});
  p.g = unfilled(line.g_dtype, {line.B, line.T, line.HV, line.K});
  p.beta = unfilled(line.beta_dtype, {line.B, line.T, line.HV});
  std::int64_t N = line.B;
  if (line.gate != GateForm::kLogDecay) {
    p.A_log = unfilled(Dtype::kF32, {line.HV});
    p.dt_bias = unfilled(Dtype::kF32, {line.HV, line.K});
  }
  if (line.lens) {
    N = static_cast<std::int64_t>(line.lens->size());
    bounds.assign(line.lens->size() + 1, 0);
    std::partial_sum(line.lens->begin(), line.lens->end(), bounds.begin() + 1);
    p.cu_seqlens =
        TensorView{reinterpret_cast<const std::byte*>(bounds.data()), Dtype::kI64, {N + 1}, {1}};
  }
  if (line.initial_state) {
    p.initial_state = unfilled(Dtype::kF32, line.v_first ? Shape{N, line.HV, line.V, line.K}
                                                         : Shape{N, line.HV, line.K, line.V});
  }
  return p;
}

std::string prefill_text(const Semantics& semantics, const Problem& problem) {
  const PrefillWork first = prefill_work(semantics, problem, OperandPolicy::kMixed);
  std::string text = fmt::format(
      "cuda-prefill\n  {}\n  {} chunks x heads, {} serial steps, {} chains\n"
      "  every tensor once: {:.1f} MB, {:.1f} GFLOP\n\n"
      "  operands  workspace MB  factors MB  chain MB  mma a factor block  mma a chain warp and "
      "chunk\n",
      cuda::plan_prefill({.HV = semantics.HV, .sequences = semantics.sequences}).text(),
      first.chunks, first.serial_steps, first.heads, first.minimum_bytes * kMega,
      first.minimum_flop * 1e-9);
  for (const OperandPolicy policy : kOperandPolicies) {
    const PrefillWork work = prefill_work(semantics, problem, policy);
    text += fmt::format("  {:<8}  {:>12.1f}  {:>10.1f}  {:>8.1f}  {:>18}  {:>26}\n", name(policy),
                        work.workspace * kMega, (work.factor_read + work.workspace) * kMega,
                        (work.workspace + work.chain_read + work.chain_written) * kMega,
                        work.factor_matrix, work.chain_matrix);
  }
  text +=
      "\n  model, ms: a kernel takes as long as its slowest part; no launch overhead\n"
      "  device  operands  floor  factors hbm, issue  chain mma, smem,   L2,   hbm  blocks "
      "(columns)  ideal  expected\n";
  for (const DeviceModel& device : device_models()) {
    for (const OperandPolicy policy : kOperandPolicies) {
      const PrefillTime t = prefill_time(prefill_work(semantics, problem, policy), device);
      text += fmt::format(
          "  {:<6}  {:<8}  {:>5.3f}  {:>11.3f}  {:>5.3f}  {:>9.3f}  {:>5.3f}  {:>5.3f}  {:>5.3f}  "
          "{:>10} ({})  {:>5.3f}  {:>8.3f}\n",
          device.name, name(policy), t.floor * kMilli, t.factor_hbm * kMilli,
          t.factor_issue * kMilli, t.chain_matrix * kMilli, t.chain_shared * kMilli,
          t.chain_l2 * kMilli, t.chain_hbm * kMilli, t.chain_blocks, t.chain_columns,
          t.ideal * kMilli, t.expected * kMilli);
    }
  }
  return text;
}

std::string recurrent_text(const Semantics& s, const Problem& problem) {
  const RecurrentCost cost = recurrent_cost(s, problem);
  const cuda::RecurrentPlan plan = cuda::plan_recurrent({.N = s.N(),
                                                         .HV = s.HV,
                                                         .K = s.K,
                                                         .V = s.V,
                                                         .layout = s.state_layout,
                                                         .state = Dtype::kF32,
                                                         .table = problem.cu_seqlens.has_value()});
  std::string text = fmt::format(
      "cuda-recurrent\n  {}\n  {} serial steps; every tensor once: {:.3f} MB\n  floor, us:",
      plan.text(), cost.serial_steps, cost.bytes * kMega);
  for (const DeviceModel& device : device_models()) {
    text += fmt::format("  {} {:.2f}", device.name, recurrent_floor(cost, device) * 1e6);
  }
  return text + "\n";
}

}  // namespace

std::string plan_text(const CaseLine& line) {
  std::vector<std::int64_t> bounds;
  const Problem problem = unfilled_call(line, bounds);
  const Contract contract = contract_of(line.op).value();
  const Semantics semantics = check(contract, problem);
  return to_string(line) + "\n" +
         (contract == Contract::kKdaPrefill ? prefill_text(semantics, problem)
                                            : recurrent_text(semantics, problem));
}

}  // namespace kda::harness
