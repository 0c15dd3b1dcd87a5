#include "bench/gpu_call.hpp"

#include "cuda/prefill.hpp"
#include "cuda/recurrent.hpp"
#include "harness/case/same_bits.hpp"
#include "reference/fast.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace kda::bench {
namespace {

using harness::Case;
using harness::KdaCase;
using harness::same_bits;

/// The elements of a dense tensor in device memory.
TensorView upload(const char* name, const TensorView& host, cuda::Device& device) {
  const auto bytes = static_cast<std::size_t>(host.size() * size_of(host.dtype));
  std::byte* data = device.allocate(name, bytes);
  device.copy_to_device(data, host.data, bytes);
  return {data, host.dtype, host.shape, dense_strides(host.shape)};
}

cuda::OutputView output(const char* name, Dtype dtype, const Shape& shape, cuda::Device& device) {
  const auto bytes = static_cast<std::size_t>(num_elements(shape) * size_of(dtype));
  return {device.allocate(name, bytes), dtype, shape, dense_strides(shape)};
}

Tensor download(const cuda::OutputView& from, cuda::Device& device) {
  Tensor tensor(from.dtype, from.shape);
  device.copy_to_host(tensor.data(), from.data, static_cast<std::size_t>(tensor.bytes()));
  return tensor;
}

Tensor in_dtype(const TensorView& from, Dtype dtype) {
  Tensor to(dtype, from.shape);
  for (std::int64_t i = 0; i < to.size(); ++i) to.store(i, load(from, i));
  return to;
}

/// Moves the tensors of a problem to the device; cu_seqlens stays with the host.
void upload_inputs(Problem& p, Dtype state, cuda::Device& device) {
  p.q = upload("q", p.q, device);
  p.k = upload("k", p.k, device);
  p.v = upload("v", p.v, device);
  p.g = upload("g", p.g, device);
  p.beta = upload("beta", p.beta, device);
  if (p.A_log) p.A_log = upload("A_log", *p.A_log, device);
  if (p.dt_bias) p.dt_bias = upload("dt_bias", *p.dt_bias, device);
  if (p.initial_state)
    p.initial_state = upload("initial_state", in_dtype(*p.initial_state, state).view(), device);
}

class RecurrentCall final : public GpuCall {
 public:
  RecurrentCall(const KdaCase& kda_case, Dtype state, cuda::Device& device) {
    const Semantics s = check(kda_case.contract, kda_case.problem());
    args_.contract = kda_case.contract;
    args_.problem = kda_case.problem();
    upload_inputs(args_.problem, state, device);
    args_.o = output("o", args_.problem.v.dtype, s.o_shape(), device);
    if (s.final_state)
      args_.final_state = output("final_state", state, s.state_shape(s.N()), device);
    args_.workspace_bytes = cuda::plan_recurrent(args_).workspace_bytes;
    args_.workspace = device.allocate("workspace", args_.workspace_bytes);
  }
  void run(cuda::Device& device) override { plan_ = cuda::recurrent(args_, device); }
  Outputs fetch(cuda::Device& device) override {
    Outputs outputs;
    outputs.o = download(args_.o, device);
    if (args_.final_state) outputs.final_state = download(*args_.final_state, device);
    return outputs;
  }

 private:
  cuda::RecurrentArgs args_;
  cuda::RecurrentPlan plan_;  ///< what the stream may still read
};

class PrefillCall final : public GpuCall {
 public:
  PrefillCall(const KdaCase& kda_case, Dtype state, cuda::Device& device) {
    const Semantics s = check(kda_case.contract, kda_case.problem());
    args_.problem = kda_case.problem();
    upload_inputs(args_.problem, state, device);
    args_.o = output("o", args_.problem.v.dtype, s.o_shape(), device);
    if (s.final_state)
      args_.final_state = output("final_state", state, s.state_shape(s.N()), device);
    args_.workspace_bytes = cuda::plan_prefill(args_).workspace.bytes;
    args_.workspace = device.allocate("workspace", args_.workspace_bytes);
  }
  void run(cuda::Device& device) override { plan_ = cuda::prefill(args_, device); }
  Outputs fetch(cuda::Device& device) override {
    Outputs outputs;
    outputs.o = download(args_.o, device);
    if (args_.final_state) outputs.final_state = download(*args_.final_state, device);
    return outputs;
  }

 private:
  cuda::PrefillArgs args_;
  cuda::PrefillPlan plan_;  ///< what the stream may still read
};

/// As `wrong_result`; a final state of bf16, which contracts do not have,
/// within its rounding of the exact one.
std::string wrong_states(const Case& test_case, Outputs got, const std::string& judged) {
  if (!got.final_state || got.final_state->dtype() == Dtype::kF32)
    return wrong_result(test_case, got, judged);
  const Tensor rounded = *std::exchange(got.final_state, std::nullopt);
  Case without = test_case;
  std::get<KdaCase>(without.inputs).options.output_final_state = false;
  if (std::string wrong = wrong_result(without, got, judged); !wrong.empty()) return wrong;
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  const Tensor exact =
      *reference::fast(kda_case.problem(), check(kda_case.contract, kda_case.problem()))
           .final_state;
  double largest = 0;
  for (std::int64_t i = 0; i < exact.size(); ++i)
    largest = std::max(largest, std::abs(load(exact.view(), i)));
  for (std::int64_t i = 0; i < exact.size(); ++i) {
    const double want = load(exact.view(), i);
    // Rounding to 8 bits is off by 2^-8 at most; f32 arithmetic adds little to
    // it.
    const double bound = 0x1.1p-8 * std::abs(want) + 1e-5 * largest;
    if (!(std::abs(load(rounded.view(), i) - want) <= bound))
      return "final_state element " + std::to_string(i) + " is beyond its rounding";
  }
  return {};
}

/// The case with an initial state of numbers that the state's dtype holds.
Case with_stored_state(Case test_case, Dtype state) {
  auto& inputs = std::get<KdaCase>(test_case.inputs).inputs;
  const auto found = inputs.find("initial_state");
  if (state != Dtype::kF32 && found != inputs.end())
    found->second = in_dtype(in_dtype(found->second.view(), state).view(), Dtype::kF32);
  return test_case;
}

}  // namespace

GpuKernel recurrent_kernel() {
  return {"cuda-recurrent", false, [](const KdaCase& kda_case, Dtype state, cuda::Device& device) {
            return std::make_unique<RecurrentCall>(kda_case, state, device);
          }};
}

GpuKernel prefill_kernel() {
  return {"cuda-prefill", true, [](const KdaCase& kda_case, Dtype state, cuda::Device& device) {
            return std::make_unique<PrefillCall>(kda_case, state, device);
          }};
}

void time_kernel(benchmark::State& state, GpuTimer& timer, const GpuKernel& kernel,
                 const Case& test_case, Dtype state_dtype) {
  constexpr std::size_t kMostSets = 64;
  const Case stored = with_stored_state(test_case, state_dtype);
  const auto& kda_case = std::get<KdaCase>(stored.inputs);
  const LeastWork work = least_work(kda_case, static_cast<int>(size_of(state_dtype)));
  timer.release();
  cuda::Device& device = timer.device();
  std::vector<std::unique_ptr<GpuCall>> sets;
  sets.push_back(kernel.call(kda_case, state_dtype, device));
  sets.front()->run(device);
  const Outputs judged = sets.front()->fetch(device);
  const std::string key = kernel.name + " " + test_case.name + " " + name(state_dtype);
  const std::string wrong =
      judge_once(key, judged, [&] { return wrong_states(stored, judged, kernel.name); });
  if (!wrong.empty()) {
    state.SkipWithError(("wrong result: " + wrong).c_str());
    return;
  }
  const double wanted = std::ceil(2 * static_cast<double>(timer.l2_bytes()) / work.bytes) + 1;
  while (static_cast<double>(sets.size()) < wanted && sets.size() < kMostSets)
    sets.push_back(kernel.call(kda_case, state_dtype, device));
  timer.record([&] {
    for (const auto& set : sets) set->run(device);
  });
  const auto calls = static_cast<double>(sets.size());
  constexpr double kWarmUp = 0.05;  // seconds, for clocks and caches to settle
  for (double warm = 0; warm < kWarmUp;) warm += timer.seconds();
  double total = 0;
  while (state.KeepRunning()) {
    const double seconds = timer.seconds() / calls;
    state.SetIterationTime(seconds);
    total += seconds;
  }
  if (!same_bits(judged, sets.back()->fetch(device))) {
    state.SkipWithError("wrong result: a timed call gave other bits than the judged one");
    return;
  }
  const GpuRates& rates = timer.rates();
  report_work(state, work,
              {rates.bytes_per_second, kernel.matrix_unit ? rates.mma_flops : rates.fma_flops},
              total / static_cast<double>(state.iterations()));
  state.counters["sets"] = calls;
  timer.release();
}

}  // namespace kda::bench
