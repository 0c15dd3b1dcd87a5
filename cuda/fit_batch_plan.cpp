#include "cuda/fit_batch_plan.hpp"

#include "reference/types/error.hpp"

namespace kda::cuda {
namespace {

constexpr std::int64_t kFitsPerBlock = kFitThreads / std::int64_t{simt::kWarpSize};

std::int64_t count_fits(std::int64_t profiles, std::int64_t resamples) {
  constexpr std::int64_t kMost = std::int64_t{simt::kMaxGridX} * kFitsPerBlock;
  std::int64_t fits = profiles;
  if (profiles < 0 || resamples < 0 ||
      (resamples > 0 && __builtin_mul_overflow(profiles, resamples, &fits)) || fits > kMost) {
    throw Error(ErrorCode::kShapeMismatch,
                "profiles * resamples: wanted 0 to " + std::to_string(kMost) + ", got " +
                    std::to_string(profiles) + " * " + std::to_string(resamples));
  }
  return fits;
}

}  // namespace

FitBatchPlan plan_fit_batch(std::int64_t profiles, std::int64_t resamples) {
  FitBatchPlan plan;
  plan.fits = count_fits(profiles, resamples);
  plan.shape.grid = {static_cast<unsigned>((plan.fits + kFitsPerBlock - 1) / kFitsPerBlock), 1, 1};
  plan.shape.block = {kFitThreads, 1, 1};
  if (plan.fits > 0) {
    plan.workspace_bytes = (static_cast<std::size_t>(profiles) + 1) * sizeof(std::int64_t);
  }
  plan.params.fits = plan.fits;
  plan.params.resamples = resamples;
  return plan;
}

std::string FitBatchPlan::text() const {
  return "fit " + std::to_string(fits) + " grid (" + std::to_string(shape.grid.x) +
         ",1,1) block (" + std::to_string(shape.block.x) + ",1,1) workspace " +
         std::to_string(workspace_bytes);
}

}  // namespace kda::cuda
