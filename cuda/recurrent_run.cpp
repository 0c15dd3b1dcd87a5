#include "cuda/device_tensors.hpp"
#include "cuda/recurrent.hpp"

namespace kda::cuda {

Outputs run_recurrent(Contract contract, const Problem& problem, Device& device) {
  const Semantics s = check(contract, problem);
  RecurrentArgs args;
  args.contract = contract;
  args.problem = problem;
  args.problem.q = on_device("q", problem.q, device);
  args.problem.k = on_device("k", problem.k, device);
  args.problem.v = on_device("v", problem.v, device);
  args.problem.g = on_device("g", problem.g, device);
  args.problem.beta = on_device("beta", problem.beta, device);
  if (s.gate != GateForm::kLogDecay) {
    move_optional("A_log", args.problem.A_log, device);
    move_optional("dt_bias", args.problem.dt_bias, device);
  }
  move_optional("initial_state", args.problem.initial_state, device);

  Outputs outputs;
  outputs.o = Tensor(problem.v.dtype, s.o_shape());
  args.o = output("o", outputs.o, device);
  if (s.final_state) {
    outputs.final_state = Tensor(Dtype::kF32, s.state_shape(s.N()));
    args.final_state = output("final_state", *outputs.final_state, device);
  }
  args.workspace_bytes = plan_recurrent(args).workspace_bytes;
  args.workspace = device.allocate("workspace", args.workspace_bytes);
  // The plan holds what the stream reads until the copies below have waited for it.
  const RecurrentPlan plan = recurrent(args, device);
  fetch(outputs.o, args.o, device);
  if (outputs.final_state) fetch(*outputs.final_state, *args.final_state, device);
  return outputs;
}

Outputs run_recurrent_cpu(Contract contract, const Problem& problem, const simt::Options& options,
                          simt::Counters* counters) {
  return run_recurrent(contract, problem, *open_executor(options, counters));
}

}  // namespace kda::cuda
