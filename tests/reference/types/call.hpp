#pragma once

#include "reference/types/problem.hpp"

#include <map>
#include <string>
#include <vector>

namespace kda::tests {

/// Owns the tensors of a call, so that tests can build a Problem in a few words.
struct Call {
  Problem problem;
  std::map<std::string, Tensor> tensors;

  /// Zero-filled tensor under this name; returns its view.
  TensorView add(const std::string& name, Dtype dtype, Shape shape) {
    return (tensors[name] = Tensor(dtype, std::move(shape))).view();
  }
};

/// B=1, T=64, H=HV=1, K=V=128, bf16: accepted by every contract.
inline Call plain_call() {
  Call call;
  Problem& p = call.problem;
  p.q = call.add("q", Dtype::kBf16, {1, 64, 1, 128});
  p.k = call.add("k", Dtype::kBf16, {1, 64, 1, 128});
  p.v = call.add("v", Dtype::kBf16, {1, 64, 1, 128});
  p.g = call.add("g", Dtype::kBf16, {1, 64, 1, 128});
  p.beta = call.add("beta", Dtype::kBf16, {1, 64, 1});
  return call;
}

/// As plain_call, with cu_seqlens holding these bounds.
inline Call varlen_call(const std::vector<std::int64_t>& bounds) {
  Call call = plain_call();
  Tensor cu(Dtype::kI64, {static_cast<std::int64_t>(bounds.size())});
  for (std::size_t i = 0; i < bounds.size(); ++i) cu.as<std::int64_t>()[i] = bounds[i];
  call.tensors["cu_seqlens"] = std::move(cu);
  call.problem.cu_seqlens = call.tensors["cu_seqlens"].view();
  return call;
}

/// As plain_call, with the gate in the kernel and both its parameters.
inline Call gated_call() {
  Call call = plain_call();
  call.problem.use_gate_in_kernel = true;
  call.problem.A_log = call.add("A_log", Dtype::kF32, {1});
  call.problem.dt_bias = call.add("dt_bias", Dtype::kF32, {1, 128});
  return call;
}

}  // namespace kda::tests
