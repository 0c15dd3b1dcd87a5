#include "cuda/device_tensors.hpp"
#include "cuda/prefill.hpp"

namespace kda::cuda {
namespace {

/// Views of `stages` on the device, and back.
class StageBuffers {
 public:
  StageBuffers(PrefillTensors* stages, const Semantics& s, Device& device) : stages_(stages) {
    if (stages_ == nullptr) return;
    const Shape wide = {s.num_chunks, s.HV, kPrefillChunk, kPrefillDim};
    const Shape square = {s.num_chunks, s.HV, kPrefillChunk, kPrefillChunk};
    make(stages_->log_decay, "stage log_decay", wide, log_decay_, device);
    make(stages_->A, "stage A", square, A_, device);
    make(stages_->Q, "stage Q", square, Q_, device);
    make(stages_->T, "stage T", square, T_, device);
    make(stages_->U, "stage U", wide, U_, device);
  }

  [[nodiscard]] PrefillStageViews views() const {
    return {data(log_decay_), data(A_), data(Q_), data(T_), data(U_)};
  }

  void fetch_all(Device& device) const {
    if (stages_ == nullptr) return;
    fetch(stages_->log_decay, log_decay_, device);
    fetch(stages_->A, A_, device);
    fetch(stages_->Q, Q_, device);
    fetch(stages_->T, T_, device);
    fetch(stages_->U, U_, device);
  }

 private:
  static void make(Tensor& tensor, const char* name, const Shape& shape, OutputView& view,
                   Device& device) {
    tensor = Tensor(Dtype::kF32, shape);
    view = output(name, tensor, device);
  }
  static float* data(const OutputView& view) { return reinterpret_cast<float*>(view.data); }

  PrefillTensors* stages_;
  OutputView log_decay_;
  OutputView A_;
  OutputView Q_;
  OutputView T_;
  OutputView U_;
};

Problem on_device(const Problem& problem, const Semantics& s, Device& device) {
  Problem moved = problem;
  moved.q = on_device("q", problem.q, device);
  moved.k = on_device("k", problem.k, device);
  moved.v = on_device("v", problem.v, device);
  moved.g = on_device("g", problem.g, device);
  moved.beta = on_device("beta", problem.beta, device);
  if (s.gate != GateForm::kLogDecay) {
    move_optional("A_log", moved.A_log, device);
    move_optional("dt_bias", moved.dt_bias, device);
  }
  move_optional("initial_state", moved.initial_state, device);
  return moved;
}

}  // namespace

Outputs run_prefill(const Problem& problem, const PrefillOptions& options, Device& device,
                    PrefillTensors* stages) {
  const Semantics s = check(Contract::kKdaPrefill, problem);
  PrefillArgs args;
  args.problem = on_device(problem, s, device);
  args.options = options;
  Outputs outputs;
  outputs.o = Tensor(Dtype::kBf16, s.o_shape());
  args.o = output("o", outputs.o, device);
  if (s.final_state) {
    outputs.final_state = Tensor(Dtype::kF32, s.state_shape(s.N()));
    args.final_state = output("final_state", *outputs.final_state, device);
  }
  if (s.chunk_states) {
    outputs.h = Tensor(Dtype::kF32, s.state_shape(s.num_chunks));
    args.h = output("h", *outputs.h, device);
  }
  const StageBuffers buffers(stages, s, device);
  args.stages = buffers.views();
  args.workspace_bytes = plan_prefill(args).workspace.bytes;
  args.workspace = device.allocate("workspace", args.workspace_bytes);
  // The plan holds what the stream reads until the copies below have waited for it.
  const PrefillPlan plan = prefill(args, device);
  fetch(outputs.o, args.o, device);
  if (outputs.final_state) fetch(*outputs.final_state, *args.final_state, device);
  if (outputs.h) fetch(*outputs.h, *args.h, device);
  buffers.fetch_all(device);
  return outputs;
}

Outputs run_prefill_cpu(const Problem& problem, const PrefillOptions& options,
                        const simt::Options& executor, simt::Counters* counters,
                        PrefillTensors* stages) {
  return run_prefill(problem, options, *open_executor(executor, counters), stages);
}

}  // namespace kda::cuda
