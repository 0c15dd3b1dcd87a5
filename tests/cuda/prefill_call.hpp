#pragma once

#include "cuda/prefill.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace kda::cuda {

/// Unit keys, K = V = 128, one key head to a value head, an initial state, all outputs asked for.
[[nodiscard]] tests::KdaInputs prefill_inputs(std::int64_t T, std::int64_t HV, std::uint64_t seed);

/// The results of a problem in host memory on the executor.
[[nodiscard]] Outputs run_prefill_case(const tests::KdaInputs& inputs,
                                       const PrefillOptions& options = {},
                                       const simt::Options& executor = {});

/// Runs of consecutive tokens of other inputs (one batch row), one after the other, as one
/// flattened batch; the initial state of each is that of the source.
class Packing {
 public:
  explicit Packing(const tests::KdaInputs& like) : like_(like) {}
  /// Tokens [0, count) of `source`, whose tensors have the heads and dtypes of `like`.
  void add(const tests::KdaInputs& source, std::int64_t count);
  [[nodiscard]] tests::KdaInputs packed() const;
  /// First row of sequence n, and the rows after the last.
  [[nodiscard]] const std::vector<std::int64_t>& bounds() const { return bounds_; }

 private:
  const tests::KdaInputs& like_;
  std::vector<tests::KdaInputs> parts_;
  std::vector<std::int64_t> bounds_{0};
};

/// True when rows [a_first, a_first + count) of `a` [1,T,...] have the bits of those of `b` from
/// `b_first` on.
[[nodiscard]] bool same_rows(const Tensor& a, std::int64_t a_first, const Tensor& b,
                             std::int64_t b_first, std::int64_t count);

/// What the first kernel left for a chunk, as the numbers it stands for in the kernel's own units
/// (parts added, fixed scales taken out; p and kap still to be multiplied in).
struct PrefillBlob {
  std::vector<double> Kg;       ///< [64,128]
  std::vector<double> Qg;       ///< [64,128]
  std::vector<double> Kd;       ///< [64,128]
  std::vector<double> T;        ///< [64,64]
  std::vector<double> Q;        ///< [64,64]
  std::vector<double> kap;      ///< [128]
  std::vector<double> p;        ///< [64]
  std::vector<double> v_scale;  ///< [64]
  std::vector<double> o_scale;  ///< [64]
};

/// A call in buffers of the executor, whose workspace can be filled before and read afterwards.
class PrefillCall {
 public:
  explicit PrefillCall(const tests::KdaInputs& inputs, const PrefillOptions& options = {});

  void fill_workspace(int byte);
  /// The results.
  Outputs run();
  /// No byte of an input differs from what the call was given.
  [[nodiscard]] bool inputs_unchanged();
  /// Of chunk `chunk` and value head `hv`, with everything in one segment.
  [[nodiscard]] PrefillBlob blob(std::int64_t chunk, std::int64_t hv);

 private:
  struct Input {
    std::byte* device;
    TensorView host;
  };
  TensorView upload(const char* name, const TensorView& view);
  OutputView make_output(const char* name, Tensor& tensor);
  void fetch(Tensor& tensor, const OutputView& view);

  tests::KdaInputs inputs_;
  std::unique_ptr<Device> device_;
  std::vector<Input> uploaded_;
  PrefillArgs args_;
  PrefillPlan plan_;
  Outputs outputs_;
};

}  // namespace kda::cuda
