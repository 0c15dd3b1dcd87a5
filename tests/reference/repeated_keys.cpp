#include "tests/reference/repeated_keys.hpp"

#include <cmath>
#include <vector>

namespace kda::tests {
namespace {

/// `rows` directions of length 1.
std::vector<double> directions(std::int64_t rows, std::int64_t K, std::uint64_t seed) {
  Tensor drawn = uniform(Dtype::kF64, {3, rows, K}, seed, -1, 1);
  std::vector<double> out(static_cast<std::size_t>(rows * K));
  for (std::int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (std::int64_t c = i * K; c < (i + 1) * K; ++c) {
      double& x = out[static_cast<std::size_t>(c)];
      for (std::int64_t term = 0; term < 3; ++term) x += load(drawn.view(), term * rows * K + c);
      sum += x * x;
    }
    for (std::int64_t c = i * K; c < (i + 1) * K; ++c) {
      out[static_cast<std::size_t>(c)] /= std::sqrt(sum);
    }
  }
  return out;
}

}  // namespace

std::string RepeatedKeys::text() const {
  return "T " + std::to_string(T) + ", K " + std::to_string(K) + ", V " + std::to_string(V) +
         ", beta " + std::to_string(beta) + (query_is_key ? ", q = k" : ", random q") +
         (constant_gate ? ", constant gate" : "") + (initial_state ? ", initial state" : "") +
         ", period " + std::to_string(period) + ", turn " + std::to_string(turn);
}

KdaInputs make(const RepeatedKeys& what, std::uint64_t seed, Dtype dtype) {
  const std::int64_t K = what.K;
  KdaInputs in = zeros({.T = what.T, .K = K, .V = what.V}, dtype);
  const auto turn_of = [&](std::int64_t t) { return what.turn > 0 ? t / what.turn : 0; };
  const std::int64_t keys = what.period * (turn_of(what.T) + 1);
  const std::vector<double> key = directions(keys, K, seed + 1);
  const std::vector<double> query = directions(what.T, K, seed + 2);
  const auto key_of = [&](std::int64_t i) {
    const std::int64_t t = i / K;
    const std::int64_t row = turn_of(t) * what.period + t % what.period;
    return key[static_cast<std::size_t>(row * K + i % K)];
  };
  fill(in.k, key_of);
  fill(in.q, [&](std::int64_t i) {
    return what.query_is_key ? key_of(i) : query[static_cast<std::size_t>(i)];
  });
  const Tensor v = uniform(Dtype::kF64, {3, what.T, what.V}, seed + 3, -1, 1);
  fill(in.v, [&](std::int64_t i) {
    const std::int64_t term = what.T * what.V;
    return load(v.view(), i) + load(v.view(), term + i) + load(v.view(), 2 * term + i);
  });
  const Tensor gate = uniform(Dtype::kF64, {what.T, K}, seed + 4, 1, 2);
  fill(in.g, [&](std::int64_t i) {
    return -0x1p-13 * load(gate.view(), what.constant_gate ? i % K : i);
  });
  fill(in.beta,
       [&](std::int64_t t) { return what.beta * std::pow(0.8, static_cast<double>(turn_of(t))); });
  if (what.initial_state) in.initial_state = random_state(in.semantics(), seed + 5);
  return in;
}

}  // namespace kda::tests
