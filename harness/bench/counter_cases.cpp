#include "cuda/fit_batch.hpp"
#include "cuda/prefill.hpp"
#include "cuda/recurrent.hpp"
#include "harness/bench/counter_run.hpp"
#include "harness/case/case_line.hpp"
#include "reference/predictor.hpp"

namespace kda::harness {
namespace {

CounterCase recurrent_case(std::string name, std::string line) {
  const auto run = [line](cuda::Device& device) {
    const Case made = make_case(parse_case_line(line));
    const auto& kda_case = std::get<KdaCase>(made.inputs);
    static_cast<void>(cuda::run_recurrent(kda_case.contract, kda_case.problem(), device));
  };
  return {"cuda-recurrent", std::move(name), std::move(line), run};
}

CounterCase prefill_case(std::string name, std::string line) {
  const auto run = [line](cuda::Device& device) {
    const Case made = make_case(parse_case_line(line));
    const auto& kda_case = std::get<KdaCase>(made.inputs);
    static_cast<void>(cuda::run_prefill(kda_case.problem(), {}, device));
  };
  return {"cuda-prefill", std::move(name), std::move(line), run};
}

TensorView zeros(cuda::Device& device, const char* name, Dtype dtype, const Shape& shape) {
  const std::vector<std::byte> bytes(
      static_cast<std::size_t>(num_elements(shape) * size_of(dtype)));
  std::byte* data = device.allocate(name, bytes.size());
  device.copy_to_device(data, bytes.data(), bytes.size());
  return {data, dtype, shape, dense_strides(shape)};
}

cuda::OutputView as_output(const TensorView& x) {
  return {const_cast<std::byte*>(x.data), x.dtype, x.shape, x.strides};
}

/// Decoding in place on a pool of bf16 states, which case lines do not have.
CounterCase pool_case(bool v_first) {
  constexpr std::int64_t kSlots = 2;
  constexpr std::int64_t kHeads = 2;
  constexpr std::int64_t kDim = 128;
  const auto run = [v_first](cuda::Device& device) {
    cuda::RecurrentArgs args;
    Problem& p = args.problem;
    p.q = p.k = p.v = p.g = zeros(device, "qkvg", Dtype::kBf16, {kSlots, 1, kHeads, kDim});
    p.beta = zeros(device, "beta", Dtype::kBf16, {kSlots, 1, kHeads});
    p.state_v_first = v_first;
    args.o = as_output(zeros(device, "o", Dtype::kBf16, {kSlots, 1, kHeads, kDim}));
    args.pool = as_output(zeros(device, "pool", Dtype::kBf16, {kSlots, kHeads, kDim, kDim}));
    static_cast<void>(cuda::recurrent(args, device));
  };
  const std::string layout = v_first ? "vk" : "kv";
  return {"cuda-recurrent", "decode_pool_" + layout + "_bf16",
          "pool of 2 bf16 states [" + std::string(v_first ? "V,K" : "K,V") + "], T=1 H=2 K=V=128",
          run};
}

CounterCase fit_case(std::string name, std::int64_t profiles, std::int64_t resamples) {
  const auto run = [=](cuda::Device& device) {
    std::vector<std::int64_t> lengths;
    std::vector<double> latencies;
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t p = 0; p < profiles; ++p) {
      for (const std::int64_t length : reference::profile_lengths(8192)) {
        const auto l = static_cast<double>(length);
        lengths.push_back(length);
        latencies.push_back(2e-7 * l * l + 0.02 * l + 12 + static_cast<double>(p));
      }
      offsets.push_back(static_cast<std::int64_t>(lengths.size()));
    }
    const cuda::FitBatch batch{
        .seq_lens = lengths, .latencies = latencies, .offsets = offsets, .resamples = resamples};
    static_cast<void>(cuda::run_fit_batch(batch, device));
  };
  std::string line = std::to_string(profiles) + " profiles of 128 samples";
  if (resamples != 0) line += ", " + std::to_string(resamples) + " resamples of each";
  return {"cuda-fit", std::move(name), std::move(line), run};
}

}  // namespace

std::vector<CounterCase> counter_cases() {
  const std::string decode = "op=recurrent_kda B=2 T=1 H=2 gate=softplus l2norm=1 beta_sigmoid=1 ";
  const std::string states = "initial_state=1 final_state=1";
  std::vector<CounterCase> cases;
  cases.push_back(recurrent_case("decode_kv_f32", decode + states));
  cases.push_back(recurrent_case("decode_vk_f32", decode + "v_first=1 " + states));
  cases.push_back(recurrent_case("decode_k64", decode + "K=64 V=64 " + states));
  cases.push_back(recurrent_case("decode_k256", decode + "K=256 V=256 " + states));
  cases.push_back(recurrent_case("decode_gva", decode + "HV=4 " + states));
  cases.push_back(recurrent_case("tokens_8", "op=recurrent_kda T=8 H=2 " + states));
  cases.push_back(recurrent_case("tokens_8_vk", "op=recurrent_kda T=8 H=2 v_first=1 " + states));
  cases.push_back(recurrent_case("unaligned_f16",
                                 "op=recurrent_kda lens=1,0,3 H=2 K=40 V=23 dtype=f16 " + states));
  cases.push_back(pool_case(false));
  cases.push_back(pool_case(true));
  const std::string fused = "op=kda_prefill gate=bound safe_gate=1 l2norm=1 beta_sigmoid=1 ";
  cases.push_back(prefill_case("tokens_64", fused + "T=64 H=1 final_state=1"));
  cases.push_back(prefill_case("tokens_200", fused + "T=200 H=1 h=1 " + states));
  cases.push_back(prefill_case("packed", fused + "lens=1,65,63 H=1 " + states));
  cases.push_back(prefill_case("log_decay", "op=kda_prefill T=128 H=1 v_first=1 " + states));
  cases.push_back(fit_case("profile_128", 1, 0));
  cases.push_back(fit_case("profiles_5", 5, 0));
  cases.push_back(fit_case("bootstrap_8", 1, 8));
  return cases;
}

}  // namespace kda::harness
