#pragma once

#include "cuda/recurrent.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <memory>
#include <vector>

namespace kda::cuda {

/// A call with pool and slots, in buffers of the executor. `args` are free to edit.
class RecurrentCall {
 public:
  explicit RecurrentCall(const tests::KdaInputs& inputs, const simt::Options& options = {});

  /// Random states.
  void make_pool(std::int64_t slots, Dtype dtype);
  void set_slots(const std::vector<std::int64_t>& slots);
  /// Moves the pool to where rows are `extra` elements longer and slots `factor` times as far.
  void spread_pool(std::int64_t factor, std::int64_t extra);
  void spread_beta(std::int64_t factor);
  void spread_slots(std::int64_t factor);

  void run();
  /// Dense copies of what the device holds.
  [[nodiscard]] Tensor pool();
  [[nodiscard]] Tensor o();
  [[nodiscard]] Device& device() { return *device_; }

  RecurrentArgs args;

 private:
  TensorView upload(const char* name, const TensorView& view);
  Tensor gather(const OutputView& view);

  tests::KdaInputs inputs_;
  std::unique_ptr<Device> device_;
  std::vector<std::int64_t> slots_;
};

}  // namespace kda::cuda
