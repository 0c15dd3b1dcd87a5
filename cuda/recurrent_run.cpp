#include "cuda/recurrent.hpp"

#include <cstring>
#include <vector>

namespace kda::cuda {
namespace {

/// The elements in row-major order.
std::vector<std::byte> dense_bytes(const TensorView& view) {
  const auto element = static_cast<std::size_t>(size_of(view.dtype));
  const auto count = static_cast<std::size_t>(view.size());
  std::vector<std::byte> bytes(count * element);
  if (count == 0) return bytes;
  if (view.is_dense()) {
    std::memcpy(bytes.data(), view.data, bytes.size());
    return bytes;
  }
  std::vector<std::int64_t> index(view.shape.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * view.strides[d];
    const std::byte* from = view.data + offset * size_of(view.dtype);
    std::memcpy(bytes.data() + i * element, from, element);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < view.shape[d]) break;
      index[d] = 0;
    }
  }
  return bytes;
}

/// The view's elements in device memory.
TensorView on_device(const char* name, const TensorView& view, Device& device) {
  const std::vector<std::byte> bytes = dense_bytes(view);
  std::byte* data = device.allocate(name, bytes.size());
  device.copy_to_device(data, bytes.data(), bytes.size());
  return {data, view.dtype, view.shape, dense_strides(view.shape)};
}

void move_optional(const char* name, std::optional<TensorView>& view, Device& device) {
  if (view) view = on_device(name, *view, device);
}

OutputView output(const char* name, const Tensor& like, Device& device) {
  std::byte* data = device.allocate(name, static_cast<std::size_t>(like.bytes()));
  return {data, like.dtype(), like.shape(), dense_strides(like.shape())};
}

void fetch(Tensor& to, const OutputView& from, Device& device) {
  device.copy_to_host(to.data(), from.data, static_cast<std::size_t>(to.bytes()));
}

}  // namespace

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
