#include "tests/reference/kda_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace kda::tests {
namespace {

/// splitmix64 of (seed, index): no state, so that a fill never depends on its order.
double unit(std::uint64_t seed, std::int64_t index) {
  std::uint64_t z =
      seed * 0xD1342543DE82EF95U + (static_cast<std::uint64_t>(index) + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

std::optional<TensorView> view(const std::optional<Tensor>& tensor) {
  if (!tensor) return {};
  return tensor->view();
}

/// Blocks of `block` elements from `from` on, `count` of them.
double error_of(const std::vector<double>& got, const std::vector<double>& want, std::int64_t from,
                std::int64_t count) {
  double difference = 0;
  double size = 0;
  for (auto i = static_cast<std::size_t>(from); i < static_cast<std::size_t>(from + count); ++i) {
    if (std::isfinite(got[i]) != std::isfinite(want[i])) {
      return std::numeric_limits<double>::infinity();
    }
    if (!std::isfinite(want[i])) continue;
    difference = std::max(difference, std::abs(got[i] - want[i]));
    size = std::max(size, std::abs(want[i]));
  }
  return difference == 0 ? 0 : difference / size;
}

double error_of_states(const Tensor& got, const Tensor& want, std::int64_t from,
                       std::int64_t count) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  const std::int64_t slot_size = want.shape()[1] * want.shape()[2] * want.shape()[3];
  return error_of(to_f64(got.view()), to_f64(want.view()), from * slot_size, count * slot_size);
}

}  // namespace

Problem KdaInputs::problem() const {
  Problem p = options;
  p.q = q.view();
  p.k = k.view();
  p.v = v.view();
  p.g = g.view();
  p.beta = beta.view();
  p.A_log = view(A_log);
  p.dt_bias = view(dt_bias);
  p.initial_state = view(initial_state);
  p.cu_seqlens = view(cu_seqlens);
  return p;
}

KdaInputs zeros(const Extents& x, Dtype dtype) {
  KdaInputs inputs;
  inputs.q = Tensor(dtype, {x.B, x.T, x.H, x.K});
  inputs.k = Tensor(dtype, {x.B, x.T, x.H, x.K});
  inputs.v = Tensor(dtype, {x.B, x.T, x.HV, x.V});
  inputs.g = Tensor(Dtype::kF32, {x.B, x.T, x.HV, x.K});
  inputs.beta = Tensor(Dtype::kF32, {x.B, x.T, x.HV});
  inputs.options.output_final_state = true;
  inputs.options.return_intermediate_states = true;
  return inputs;
}

KdaInputs random_inputs(const Extents& x, std::uint64_t seed, Dtype dtype) {
  KdaInputs inputs = zeros(x, dtype);
  const double side = std::sqrt(3.0 / static_cast<double>(x.K));  // expected length 1
  fill_uniform(inputs.q, seed + 1, -side, side);
  fill_uniform(inputs.k, seed + 2, -side, side);
  fill_uniform(inputs.v, seed + 3, -2, 2);
  fill_uniform(inputs.g, seed + 4, -1, 0);
  fill_uniform(inputs.beta, seed + 5, 0, 1);
  return inputs;
}

void fill_uniform(Tensor& tensor, std::uint64_t seed, double low, double high) {
  fill(tensor, [=](std::int64_t i) { return low + (high - low) * unit(seed, i); });
}

void fill(Tensor& tensor, const std::function<double(std::int64_t)>& value) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, value(i));
}

Tensor uniform(Dtype dtype, Shape shape, std::uint64_t seed, double low, double high) {
  Tensor tensor(dtype, std::move(shape));
  fill_uniform(tensor, seed, low, high);
  return tensor;
}

Tensor bounds(const std::vector<std::int64_t>& values) {
  Tensor tensor(Dtype::kI64, {static_cast<std::int64_t>(values.size())});
  std::ranges::copy(values, tensor.as<std::int64_t>());
  return tensor;
}

Tensor f32(Shape shape, const std::vector<double>& values) {
  Tensor tensor(Dtype::kF32, std::move(shape));
  fill(tensor, [&](std::int64_t i) { return values.at(static_cast<std::size_t>(i)); });
  return tensor;
}

Tensor random_state(const Semantics& semantics, std::uint64_t seed) {
  return uniform(Dtype::kF32, semantics.state_shape(semantics.N()), seed, -1, 1);
}

Tensor tokens(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  Shape shape = tensor.shape();
  const std::int64_t T = std::exchange(shape[1], end - begin);
  Tensor part(tensor.dtype(), shape);
  const std::int64_t row = T == 0 || shape[0] == 0 ? 0 : tensor.bytes() / (shape[0] * T);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    std::copy_n(tensor.data() + (b * T + begin) * row, (end - begin) * row,
                part.data() + b * (end - begin) * row);
  }
  return part;
}

Tensor slot(const Tensor& tensor, std::int64_t i) {
  Shape shape = tensor.shape();
  const std::int64_t count = std::exchange(shape[0], 1);
  Tensor part(tensor.dtype(), shape);
  const std::int64_t bytes = tensor.bytes() / count;
  std::copy_n(tensor.data() + i * bytes, bytes, part.data());
  return part;
}

KdaInputs cut(const KdaInputs& inputs, std::int64_t begin, std::int64_t end) {
  KdaInputs part = inputs;
  part.q = tokens(inputs.q, begin, end);
  part.k = tokens(inputs.k, begin, end);
  part.v = tokens(inputs.v, begin, end);
  part.g = tokens(inputs.g, begin, end);
  part.beta = tokens(inputs.beta, begin, end);
  // An empty sequence is legal in a flattened batch only.
  part.cu_seqlens.reset();
  if (begin == end) part.cu_seqlens = bounds({0, 0});
  return part;
}

double relative_error(const Tensor& got, const Tensor& want) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  return error_of(to_f64(got.view()), to_f64(want.view()), 0, want.size());
}

double relative_error(const Outputs& got, const Outputs& want, const Semantics& semantics) {
  constexpr double kBad = std::numeric_limits<double>::infinity();
  if (got.o.shape() != want.o.shape()) return kBad;
  if (got.final_state.has_value() != want.final_state.has_value()) return kBad;
  if (got.h.has_value() != want.h.has_value()) return kBad;
  const std::vector<double> got_o = to_f64(got.o.view());
  const std::vector<double> want_o = to_f64(want.o.view());
  const std::int64_t row = semantics.HV * semantics.V;
  double worst = 0;
  for (std::int64_t n = 0; n < semantics.N(); ++n) {
    const Sequence& sequence = semantics.sequences[static_cast<std::size_t>(n)];
    const std::int64_t first = (sequence.b * semantics.T + sequence.begin) * row;
    worst = std::max(worst, error_of(got_o, want_o, first, sequence.length() * row));
    if (want.final_state) {
      worst = std::max(worst, error_of_states(*got.final_state, *want.final_state, n, 1));
    }
    if (want.h) {
      const std::int64_t chunks = (sequence.length() + semantics.chunk - 1) / semantics.chunk;
      worst = std::max(worst, error_of_states(*got.h, *want.h, sequence.first_chunk, chunks));
    }
  }
  return worst;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::equal(a.data(), a.data() + a.bytes(), b.data());
}

bool same_bits(const Outputs& a, const Outputs& b) {
  const auto same = [](const std::optional<Tensor>& x, const std::optional<Tensor>& y) {
    return x.has_value() == y.has_value() && (!x || same_bits(*x, *y));
  };
  return same_bits(a.o, b.o) && same(a.final_state, b.final_state) && same(a.h, b.h);
}

}  // namespace kda::tests
