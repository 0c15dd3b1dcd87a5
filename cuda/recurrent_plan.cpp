#include "cuda/recurrent_plan.hpp"

#include "reference/types/error.hpp"

#include <algorithm>
#include <limits>

namespace kda::cuda {
namespace {

constexpr std::int64_t kColumns = 32;
constexpr unsigned kThreads = 128;

std::string text_of(const simt::Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

/// Blocks in all, or a throw where not even both dimensions of a grid hold them.
std::int64_t count_blocks(const RecurrentExtents& e, std::int64_t v_blocks) {
  constexpr std::int64_t kMost = std::int64_t{simt::kMaxGridX} * simt::kMaxGridYz;
  std::int64_t blocks = 0;
  if (__builtin_mul_overflow(e.N, e.HV, &blocks) ||
      __builtin_mul_overflow(blocks, v_blocks, &blocks) || blocks > kMost) {
    throw Error(ErrorCode::kShapeMismatch, "N * HV: wanted at most " +
                                               std::to_string(kMost / v_blocks) + ", got " +
                                               std::to_string(e.N) + " * " + std::to_string(e.HV));
  }
  return blocks;
}

}  // namespace

RecurrentPlan plan_recurrent(const RecurrentExtents& e) {
  RecurrentPlan plan;
  plan.variant.state = e.state;
  plan.variant.layout = e.layout;
  plan.variant.padded_k = e.K <= 64 ? 64 : (e.K <= 128 ? 128 : 256);
  const std::int64_t v_blocks = (e.V + kColumns - 1) / kColumns;
  plan.v_blocks = static_cast<int>(v_blocks);
  plan.num_blocks = count_blocks(e, v_blocks);
  const std::int64_t x = std::min<std::int64_t>(plan.num_blocks, simt::kMaxGridX);
  const std::int64_t y = x == 0 ? 0 : (plan.num_blocks + x - 1) / x;
  plan.shape.grid = {static_cast<unsigned>(x), static_cast<unsigned>(y), 1};
  plan.shape.block = {kThreads, 1, 1};
  plan.workspace_bytes = e.table ? static_cast<std::size_t>(e.N) * sizeof(SequenceEntry) : 0;
  return plan;
}

std::string RecurrentPlan::text() const {
  return std::string("recurrent state ") + name(variant.state) +
         (variant.layout == StateLayout::kKV ? " [K,V]" : " [V,K]") +
         " K<=" + std::to_string(variant.padded_k) + " grid " + text_of(shape.grid) + " block " +
         text_of(shape.block) + " blocks " + std::to_string(num_blocks) + " workspace " +
         std::to_string(workspace_bytes);
}

}  // namespace kda::cuda
