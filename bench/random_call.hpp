#pragma once

#include "reference/types/contract.hpp"

#include <cstdint>
#include <ctime>
#include <utility>

namespace kda::bench {

inline Tensor random_tensor(Dtype dtype, Shape shape, double low, double high, std::uint64_t seed) {
  Tensor tensor(dtype, std::move(shape));
  std::uint64_t x = seed;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    tensor.store(i, low + (high - low) * static_cast<double>(x >> 11) * 0x1p-53);
  }
  return tensor;
}

/// A call of kda_prefill on random numbers: q, k, v [1,tokens,heads,128] bf16, g f32 in (-0.2, 0),
/// beta [1,tokens,heads] f32 in (0, 1), with a final state.
struct RandomCall {
  Tensor q, k, v, g, beta;
  Problem problem;
  Semantics semantics;

  RandomCall(std::int64_t tokens, std::int64_t heads)
      : q(random_tensor(Dtype::kBf16, {1, tokens, heads, 128}, -0.15, 0.15, 1)),
        k(random_tensor(Dtype::kBf16, {1, tokens, heads, 128}, -0.15, 0.15, 2)),
        v(random_tensor(Dtype::kBf16, {1, tokens, heads, 128}, -2, 2, 3)),
        g(random_tensor(Dtype::kF32, {1, tokens, heads, 128}, -0.2, 0, 4)),
        beta(random_tensor(Dtype::kF32, {1, tokens, heads}, 0, 1, 5)),
        problem(make_problem()),
        semantics(check(Contract::kKdaPrefill, problem)) {}
  RandomCall(const RandomCall&) = delete;  // `problem` views the tensors of this object
  RandomCall& operator=(const RandomCall&) = delete;

 private:
  [[nodiscard]] Problem make_problem() const {
    Problem p;
    p.q = q.view();
    p.k = k.view();
    p.v = v.view();
    p.g = g.view();
    p.beta = beta.view();
    p.output_final_state = true;
    return p;
  }
};

/// Processor time, which other work on the machine does not count into.
inline double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace kda::bench
