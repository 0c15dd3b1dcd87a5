#pragma once

#include "reference/types/contract.hpp"
#include "reference/types/problem.hpp"
#include "reference/types/tensor.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kda::tests {

struct Extents {
  std::int64_t B = 1;
  std::int64_t T = 1;
  std::int64_t H = 1;
  std::int64_t HV = 1;
  std::int64_t K = 8;
  std::int64_t V = 8;
};

/// A KDA call with its storage. The tensors are free to edit; `problem()` views them.
struct KdaInputs {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor g;
  Tensor beta;
  std::optional<Tensor> A_log;
  std::optional<Tensor> dt_bias;
  std::optional<Tensor> initial_state;
  std::optional<Tensor> cu_seqlens;
  Problem options;  ///< params only

  [[nodiscard]] Problem problem() const;
  /// As recurrent_kda sees it: the widest of the contracts.
  [[nodiscard]] Semantics semantics() const { return check(Contract::kRecurrentKda, problem()); }
};

/// Zeros of these extents, no optional input, all outputs asked for.
[[nodiscard]] KdaInputs zeros(const Extents& x, Dtype dtype = Dtype::kF32);

/// q, k of length about 1, v normal-like in [-2, 2], g in [-1, 0], beta in [0, 1].
[[nodiscard]] KdaInputs random_inputs(const Extents& x, std::uint64_t seed,
                                      Dtype dtype = Dtype::kF32);

/// Uniform in [low, high], the same on every machine.
void fill_uniform(Tensor& tensor, std::uint64_t seed, double low, double high);
/// Every element from its row-major index.
void fill(Tensor& tensor, const std::function<double(std::int64_t)>& value);
[[nodiscard]] Tensor uniform(Dtype dtype, Shape shape, std::uint64_t seed, double low, double high);
/// 1-D i64.
[[nodiscard]] Tensor bounds(const std::vector<std::int64_t>& values);
[[nodiscard]] Tensor f32(Shape shape, const std::vector<double>& values);
[[nodiscard]] Tensor random_state(const Semantics& semantics, std::uint64_t seed);

/// Tokens [begin, end) of dimension 1, of a tensor [B,T,...].
[[nodiscard]] Tensor tokens(const Tensor& tensor, std::int64_t begin, std::int64_t end);
/// Slot `i` of dimension 0, which stays as extent 1.
[[nodiscard]] Tensor slot(const Tensor& tensor, std::int64_t i);
/// The inputs without the tokens outside [begin, end): one sequence, whatever state they carry.
[[nodiscard]] KdaInputs cut(const KdaInputs& inputs, std::int64_t begin, std::int64_t end);

/// max|got - want| / max|want| over everything; infinite when a shape or a finite mask differs.
[[nodiscard]] double relative_error(const Tensor& got, const Tensor& want);
/// The worst over o, final_state and h, each per sequence.
[[nodiscard]] double relative_error(const Outputs& got, const Outputs& want,
                                    const Semantics& semantics);

[[nodiscard]] bool same_bits(const Tensor& a, const Tensor& b);
[[nodiscard]] bool same_bits(const Outputs& a, const Outputs& b);

}  // namespace kda::tests
