#pragma once

#include "cuda/fit_batch_params.hpp"
#include "cuda/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kda::cuda {

/// How a batch of fits is launched: a warp each. `params` and `offsets` are filled by
/// plan_fit_batch(FitBatchArgs); the device address of the offsets is known only with the
/// workspace.
struct FitBatchPlan {
  LaunchShape shape;
  std::int64_t fits = 0;
  std::size_t workspace_bytes = 0;  ///< holds the offsets
  FitParams params{};
  std::vector<std::int64_t> offsets;

  /// One line: fits, grid, block, workspace.
  [[nodiscard]] std::string text() const;
};

/// Pure: one fit per profile, or `resamples` of each. Throws kShapeMismatch for negative numbers
/// and for more fits than a grid can hold.
[[nodiscard]] FitBatchPlan plan_fit_batch(std::int64_t profiles, std::int64_t resamples);

/// The compiled kernel.
[[nodiscard]] KernelForms fit_kernel_forms();

/// Of the device code; nullptr when it was not compiled.
[[nodiscard]] const void* fit_gpu_symbol();

}  // namespace kda::cuda
