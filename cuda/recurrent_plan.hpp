#pragma once

#include "cuda/recurrent_params.hpp"
#include "cuda/runtime.hpp"
#include "reference/types/dtype.hpp"
#include "reference/types/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kda::cuda {

/// Which of the compiled kernels.
struct RecurrentVariant {
  Dtype state = Dtype::kF32;  ///< kF32 or kBf16
  StateLayout layout = StateLayout::kKV;
  int padded_k = 128;  ///< 64, 128 or 256

  bool operator==(const RecurrentVariant&) const = default;
};

/// What a plan depends on.
struct RecurrentExtents {
  std::int64_t N = 0;
  std::int64_t HV = 0;
  std::int64_t K = 0;
  std::int64_t V = 0;
  StateLayout layout = StateLayout::kKV;
  Dtype state = Dtype::kF32;
  bool table = false;  ///< cu_seqlens or slots are given
};

/// How a call is launched. `params` and `table` are filled by plan_recurrent(RecurrentArgs); the
/// device address of the table is known only with the workspace.
struct RecurrentPlan {
  RecurrentVariant variant;
  LaunchShape shape;
  std::int64_t num_blocks = 0;  ///< that have work; the grid may be larger
  int v_blocks = 0;
  std::size_t workspace_bytes = 0;  ///< holds the table
  RecurrentParams params{};
  std::vector<SequenceEntry> table;

  /// One line: variant, grid, block, workspace.
  [[nodiscard]] std::string text() const;
};

/// Pure: grid, block, variant and workspace. One block per sequence, value head and 32 value
/// columns; more blocks than a grid's x holds go on in y. Throws kShapeMismatch for more blocks
/// than a grid can hold.
[[nodiscard]] RecurrentPlan plan_recurrent(const RecurrentExtents& extents);

/// The compiled kernel of a variant.
[[nodiscard]] KernelForms recurrent_kernel_forms(const RecurrentVariant& variant);

/// Of the device code; nullptr when it was not compiled. Index as recurrent_variants.
[[nodiscard]] const void* recurrent_gpu_symbol(std::size_t index);

}  // namespace kda::cuda
