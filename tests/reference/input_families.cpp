#include "tests/reference/input_families.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kda::tests {
namespace {

/// splitmix64 of (seed, index): no state, so that a value never depends on the order of draws.
std::uint64_t bits(std::uint64_t seed, std::int64_t index) {
  std::uint64_t z =
      seed * 0xD1342543DE82EF95U + (static_cast<std::uint64_t>(index) + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

double uniform01(std::uint64_t seed, std::int64_t index) {
  return static_cast<double>(bits(seed, index) >> 11U) * 0x1p-53;
}

double normal(std::uint64_t seed, std::int64_t index) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform01(seed, 2 * index)));
  return radius * std::cos(6.283185307179586 * uniform01(seed, 2 * index + 1));
}

void fill_normal(Tensor& tensor, std::uint64_t seed) {
  fill(tensor, [=](std::int64_t i) { return normal(seed, i); });
}

/// Rows of length 1 from random directions plus `common` times one direction of the head.
void fill_directions(Tensor& tensor, std::uint64_t seed, double common, double noise) {
  const std::int64_t H = tensor.shape()[2];
  const std::int64_t K = tensor.shape()[3];
  std::vector<double> row(static_cast<std::size_t>(K));
  for (std::int64_t i = 0; i < tensor.size() / K; ++i) {
    double sum = 0;
    for (std::int64_t c = 0; c < K; ++c) {
      const double value =
          common * normal(seed + 77, i % H * K + c) + noise * normal(seed, i * K + c);
      row[static_cast<std::size_t>(c)] = value;
      sum += value * value;
    }
    for (std::int64_t c = 0; c < K; ++c) {
      tensor.store(i * K + c, row[static_cast<std::size_t>(c)] / std::sqrt(sum));
    }
  }
}

/// Random directions, log decays of half a unit, beta in (0, 1), an initial state.
KdaInputs ordinary(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = zeros(x, dtype);
  fill_directions(in.q, seed + 1, 0, 1);
  fill_directions(in.k, seed + 2, 0, 1);
  fill_normal(in.v, seed + 3);
  fill(in.g, [=](std::int64_t i) { return -0.5 * std::abs(normal(seed + 4, i)); });
  fill_uniform(in.beta, seed + 5, 0.05, 0.95);
  in.initial_state = Tensor(Dtype::kF32, in.semantics().state_shape(in.semantics().N()));
  fill_normal(*in.initial_state, seed + 6);
  return in;
}

void set_beta(KdaInputs& in, double beta) {
  fill(in.beta, [=](std::int64_t) { return beta; });
}

void set_slow_gate(KdaInputs& in, std::uint64_t seed) {
  fill(in.g, [=](std::int64_t i) { return -4e-4 * uniform01(seed + 4, i); });
}

KdaInputs fused(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  fill_normal(in.q, seed + 1);
  fill_normal(in.k, seed + 2);
  fill_normal(in.g, seed + 4);
  fill_normal(in.beta, seed + 5);
  in.A_log = uniform(Dtype::kF32, {x.HV}, seed + 7, -1, 1);
  in.dt_bias = uniform(Dtype::kF32, {x.HV, x.K}, seed + 8, -2, 2);
  in.options.use_qk_l2norm_in_kernel = true;
  in.options.use_gate_in_kernel = true;
  in.options.use_beta_sigmoid_in_kernel = true;
  in.options.lower_bound = -5;
  return in;
}

KdaInputs softplus(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = fused(x, seed, dtype);
  in.options.lower_bound.reset();
  in.A_log = uniform(Dtype::kF32, {x.HV}, seed + 7, -4, 5.3);
  return in;
}

KdaInputs slow_gate(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  set_slow_gate(in, seed);
  return in;
}

KdaInputs constant_gate(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  const std::int64_t row = x.HV * x.K;
  fill(in.g, [=](std::int64_t i) { return -0.02 * uniform01(seed + 4, i % row); });
  return in;
}

KdaInputs no_decay(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  fill(in.g, [](std::int64_t) { return 0; });
  return in;
}

KdaInputs resets(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = slow_gate(x, seed, dtype);
  const std::int64_t K = x.K;
  for (std::int64_t i = 0; i < in.g.size(); ++i) {
    if (bits(seed + 9, i / K) % 20 == 0)
      in.g.store(i, bits(seed, i / K) % 4 == 0 ? -INFINITY : -1000);
  }
  return in;
}

/// Resets that leave a prefix sum in f32 a grid of one or two of the decays that follow.
KdaInputs coarse_sums(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = slow_gate(x, seed, dtype);
  fill_uniform(in.g, seed + 10, -2.44e-4, -1.22e-4);
  const std::int64_t K = x.K;
  for (std::int64_t i = 0; i < in.g.size(); ++i) {
    if (bits(seed + 9, i / K) % 10 == 0) in.g.store(i, -1000);
  }
  return in;
}

KdaInputs channels(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  const std::int64_t K = x.K;
  fill(in.g, [=](std::int64_t i) {
    return -std::pow(10.0, static_cast<double>(i % K % 10 - 6)) * (0.5 + uniform01(seed + 4, i));
  });
  return in;
}

KdaInputs collinear(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = slow_gate(x, seed, dtype);
  fill_directions(in.k, seed + 2, 1, 0.1);
  return in;
}

KdaInputs identical(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = slow_gate(x, seed, dtype);
  fill_directions(in.k, seed + 2, 1, 0);
  set_beta(in, 0.95);
  return in;
}

KdaInputs near_collinear(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = collinear(x, seed, dtype);
  set_beta(in, 1.98);
  return in;
}

KdaInputs reflections(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = no_decay(x, seed, dtype);
  set_beta(in, 2);
  return in;
}

KdaInputs wild(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = channels(x, seed, dtype);
  const std::int64_t V = x.V;
  const std::int64_t K = x.K;
  const auto column = [V](std::int64_t i) {
    return std::pow(10.0, static_cast<double>(i % V % 11 - 5));
  };
  fill(in.v, [=](std::int64_t i) { return normal(seed + 3, i) * column(i); });
  fill(*in.initial_state, [=](std::int64_t i) {
    return normal(seed + 6, i) * column(i) *
           std::pow(10.0, static_cast<double>(i / V % K % 11 - 5));
  });
  return in;
}

KdaInputs one_large(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = resets(x, seed, dtype);
  const std::int64_t row = x.HV * x.V;
  const std::int64_t token = x.T / 3;
  for (std::int64_t i = token * row; i < (token + 1) * row; ++i) {
    in.v.store(i, 1e5 * normal(seed + 3, i));
  }
  return in;
}

/// Writes that hardly differ and add up: one direction, one value, small beta.
KdaInputs steady(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = collinear(x, seed, dtype);
  const std::int64_t row = x.HV * x.V;
  fill(in.v, [=](std::int64_t i) { return normal(seed + 3, i % row) + 0.05 * normal(seed, i); });
  set_beta(in, 0.03);
  return in;
}

/// One gate for all channels of a head, the same for long.
KdaInputs scalar_gate(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  const std::int64_t K = x.K;
  const std::int64_t HV = x.HV;
  fill(in.g,
       [=](std::int64_t i) { return -0.03 * uniform01(seed + 4, i / K % HV + i / K / HV / 40); });
  return in;
}

/// Even and odd tokens have keys in one half of the channels each, and write one half of the
/// columns.
KdaInputs disjoint(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = slow_gate(x, seed, dtype);
  const std::int64_t token_k = x.H * x.K;
  const std::int64_t token_v = x.HV * x.V;
  for (std::int64_t i = 0; i < in.k.size(); ++i) {
    if ((i % x.K < x.K / 2) == (i / token_k % 2 == 0)) in.k.store(i, 0);
  }
  for (std::int64_t i = 0; i < in.v.size(); ++i) {
    if ((i % x.V < x.V / 2) == (i / token_v % 2 == 0)) in.v.store(i, 0);
  }
  return in;
}

KdaInputs pads(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  const auto pad = [&](std::int64_t t) { return t % 4 == 3 || t >= x.T - x.T / 4; };
  const std::array<Tensor*, 4> tensors{&in.k, &in.v, &in.g, &in.beta};
  for (Tensor* tensor : tensors) {
    const std::int64_t row = tensor->size() / (x.B * x.T);
    for (std::int64_t i = 0; i < tensor->size(); ++i) {
      if (pad(i / row % x.T)) tensor->store(i, 0);
    }
  }
  return in;
}

KdaInputs no_writes(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  set_beta(in, 0);
  return in;
}

KdaInputs uneven_keys(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs in = ordinary(x, seed, dtype);
  const std::int64_t K = x.K;
  const auto length = [=](std::int64_t i) {
    return 0.01 * std::pow(130, uniform01(seed + 9, i / K));
  };
  const std::vector<double> k = to_f64(in.k.view());
  fill(in.k, [&](std::int64_t i) { return k[static_cast<std::size_t>(i)] * length(i); });
  return in;
}

KdaInputs scaled_values(const Extents& x, std::uint64_t seed, Dtype dtype, double factor) {
  KdaInputs in = ordinary(x, seed, dtype);
  fill(in.v, [=](std::int64_t i) { return factor * normal(seed + 3, i); });
  fill(*in.initial_state, [=](std::int64_t i) { return factor * normal(seed + 6, i); });
  return in;
}

KdaInputs tiny_values(const Extents& x, std::uint64_t seed, Dtype dtype) {
  return scaled_values(x, seed, dtype, 1e-20);
}

KdaInputs huge_values(const Extents& x, std::uint64_t seed, Dtype dtype) {
  return scaled_values(x, seed, dtype, 1e12);
}

}  // namespace

/// Those beyond a limit come last.
const std::vector<InputFamily>& input_families() {
  static const std::vector<InputFamily> families{
      {"ordinary", true, false, ordinary},
      {"ordinary fused, safe gate", true, false, fused},
      {"softplus, slopes e^-4 ... e^5.3", true, false, softplus},
      {"slow gate", true, false, slow_gate},
      {"constant gate", true, false, constant_gate},
      {"no decay", true, false, no_decay},
      {"resets, -1000 and -inf", true, false, resets},
      {"resets, then decays of a rounding", true, false, coarse_sums},
      {"channels 1e-6 ... 1e3", true, false, channels},
      {"collinear keys, slow gate", true, false, collinear},
      {"identical keys, beta 0.95", true, false, identical},
      {"near-collinear, beta 1.98", true, false, near_collinear},
      {"random keys, beta 2, no decay", true, false, reflections},
      {"states and columns over 20 decades", false, false, wild},
      {"one v x1e5, resets", false, false, one_large},
      {"keys that write disjoint columns", true, false, disjoint},
      {"one gate for all channels", true, false, scalar_gate},
      {"pads", true, false, pads},
      {"beta 0", true, false, no_writes},
      {"keys of length 0.01 ... 1.3", true, false, uneven_keys},
      {"v x1e-20", true, false, tiny_values},
      {"v x1e12", false, false, huge_values},
      {"steady writes, beta 0.03", true, true, steady},
  };
  return families;
}

DrawnCase draw_case(std::uint64_t seed) {
  std::int64_t drawn = 0;
  const auto draw = [&](std::int64_t count) {
    return static_cast<std::int64_t>(bits(seed, drawn++) % static_cast<std::uint64_t>(count));
  };
  constexpr std::array<std::int64_t, 9> kWidths{1, 2, 5, 8, 16, 17, 32, 40, 64};
  const std::vector<InputFamily>& families = input_families();
  const std::int64_t drawable = std::ranges::count(families, false, &InputFamily::limit);
  const InputFamily& family = families[static_cast<std::size_t>(draw(drawable))];
  Extents x;
  x.T = 1 + (draw(3) == 0 ? draw(8) : draw(150));
  x.H = 1 + draw(2);
  x.HV = x.H * (1 + draw(2));
  x.K = kWidths.at(static_cast<std::size_t>(draw(9)));
  x.V = kWidths.at(static_cast<std::size_t>(draw(9)));
  constexpr std::array<Dtype, 3> kDtypes{Dtype::kBf16, Dtype::kF16, Dtype::kF32};
  Dtype dtype = kDtypes.at(static_cast<std::size_t>(draw(3)));
  if (dtype == Dtype::kF16 && !family.f16_range) dtype = Dtype::kBf16;
  DrawnCase result{&family, family.make(x, seed, dtype)};
  Problem& options = result.inputs.options;
  if (draw(3) == 0) result.inputs.initial_state.reset();
  if (draw(3) == 0) options.chunk_size = 32;
  if (draw(4) == 0) options.scale = 0.7;
  if (draw(3) == 0 && x.T > 3) {  // several sequences, one of them empty
    const std::int64_t cut = 1 + draw(x.T - 1);
    result.inputs.cu_seqlens = bounds({0, cut, cut, x.T});
    if (result.inputs.initial_state) {
      result.inputs.initial_state.reset();
      result.inputs.initial_state = random_state(result.inputs.semantics(), seed + 6);
    }
  }
  if (draw(3) == 0 && !result.inputs.initial_state) options.state_v_first = true;
  return result;
}

}  // namespace kda::tests
