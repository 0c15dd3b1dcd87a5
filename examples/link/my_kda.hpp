#pragma once

#include "reference/types/contract.hpp"

#include <cmath>
#include <vector>

/// What is to be judged: the recurrence in plain f32 for ready-made gates and betas, from a zero
/// state. `stale` plants a fault: a sequence begins with the state that the one before left.
inline kda::Outputs my_kda(const kda::Problem& p, const kda::Semantics& s, bool stale) {
  kda::Outputs out;
  out.o = kda::Tensor(kda::Dtype::kF32, s.o_shape());
  if (s.final_state) out.final_state = kda::Tensor(kda::Dtype::kF32, s.state_shape(s.N()));
  const auto at = [](const kda::TensorView& x, std::int64_t b, std::int64_t t, std::int64_t head,
                     std::int64_t i) {
    return static_cast<float>(
        kda::load(x, b * x.strides[0] + t * x.strides[1] + head * x.strides[2] + i * x.strides[3]));
  };
  for (std::int64_t hv = 0; hv < s.HV; ++hv) {
    const std::int64_t h = hv / (s.HV / s.H);
    std::vector<float> S(static_cast<std::size_t>(s.K * s.V));
    for (std::int64_t n = 0; n < s.N(); ++n) {
      const kda::Sequence& sequence = s.sequences[static_cast<std::size_t>(n)];
      if (!stale) S.assign(S.size(), 0.0F);
      for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
        const kda::TensorView& beta = p.beta;
        const auto b = static_cast<float>(kda::load(
            beta, sequence.b * beta.strides[0] + t * beta.strides[1] + hv * beta.strides[2]));
        for (std::int64_t v = 0; v < s.V; ++v) {
          const auto cell = [&](std::int64_t k) -> float& {
            return S[static_cast<std::size_t>(k * s.V + v)];
          };
          float u = 0;
          float o = 0;
          for (std::int64_t k = 0; k < s.K; ++k) {
            cell(k) *= std::exp(at(p.g, sequence.b, t, hv, k));
            u += at(p.k, sequence.b, t, h, k) * cell(k);
          }
          const float w = b * (at(p.v, sequence.b, t, hv, v) - u);
          for (std::int64_t k = 0; k < s.K; ++k) {
            cell(k) += at(p.k, sequence.b, t, h, k) * w;
            o += at(p.q, sequence.b, t, h, k) * cell(k);
          }
          out.o.store(((sequence.b * s.T + t) * s.HV + hv) * s.V + v, o * s.scale);
        }
      }
      if (!out.final_state) continue;
      for (std::int64_t i = 0; i < s.K * s.V; ++i) {
        out.final_state->store((n * s.HV + hv) * s.K * s.V + i, S[static_cast<std::size_t>(i)]);
      }
    }
  }
  return out;
}
