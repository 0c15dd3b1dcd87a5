#include "harness/run/peer_ratio.hpp"

#include <algorithm>

namespace kda::harness {
namespace {

std::string_view peer_of(const CaseResult& result) {
  return result.comparison->formats.starts_with("operands=f32,") ? "peer-f32" : "peer-bf16";
}

}  // namespace

void compare_with_peers(std::vector<CaseResult>& results) {
  for (CaseResult& result : results) {
    if (!result.comparison || result.comparison->formats.empty()) continue;
    const auto peer = std::ranges::find(results, peer_of(result), &CaseResult::implementation);
    if (peer == results.end() || !peer->comparison) continue;
    for (TensorReport& tensor : result.comparison->tensors) {
      const TensorReport* other = peer->comparison->find(tensor.name);
      if (other != nullptr && other->metrics.sum_error2 > 0)
        tensor.peer_ratio = tensor.metrics.rms_ratio() / other->metrics.rms_ratio();
    }
  }
}

}  // namespace kda::harness
