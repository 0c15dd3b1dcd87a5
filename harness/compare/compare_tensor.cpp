#include "harness/compare/compare_tensor.hpp"

#include "harness/compare/compare_blocks.hpp"
#include "harness/compare/compare_sigma.hpp"
#include "harness/compare/compare_tally.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Size of the expected values, which some bounds depend on.
struct ExpectedSize {
  std::vector<double> sequence_max;
  double rms = 0;
};

ExpectedSize measure(const std::vector<Block>& blocks, std::int64_t sequences) {
  ExpectedSize size;
  size.sequence_max.resize(static_cast<std::size_t>(sequences));
  double sum = 0;
  std::int64_t count = 0;
  for (const Block& block : blocks) {
    double& most = size.sequence_max[static_cast<std::size_t>(block.origin.n)];
    for (const double x : to_f64(block.expected)) {
      if (!std::isfinite(x)) continue;
      most = std::max(most, std::abs(x));
      sum += x * x;
      ++count;
    }
  }
  size.rms = count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
  return size;
}

/// Policies whose bound is a number times a size: exact, fla, sglang.
class SizeJudge {
 public:
  SizeJudge(const JudgedCase& judged, Dtype expected, const std::vector<Block>& blocks)
      : policy_(judged.policy),
        // Expected values that are not f64 have been rounded themselves.
        expected_rounding_(expected == Dtype::kF64 ? 0 : reference::rounding_of(expected).unit),
        size_(measure(blocks, judged.semantics.N())) {}

  void block(const Block& block, Tally& tally) const {
    const std::vector<double> expected = to_f64(block.expected);
    const std::vector<double> got = to_f64(block.got);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      tally.element(block, static_cast<std::int64_t>(i), expected[i], got[i],
                    bound(block, expected[i]));
    }
    if (!policy_.tensor_rms) tally.test_elements();
  }

  void whole(Tally& tally) const {
    if (!policy_.tensor_rms) return;
    const double ratio = tally.report().metrics.rms_ratio();
    tally.test(ratio / *policy_.tensor_rms, [&] {
      return fmt::format("RMS(error) / RMS(expected) = {:.3g}, wanted at most {:.3g}", ratio,
                         *policy_.tensor_rms);
    });
  }

 private:
  /// Of an element. Where the policy has none (fla), seven times what it allows on RMS average,
  /// which only serves to count elements that stand out.
  [[nodiscard]] double bound(const Block& block, double expected) const {
    if (policy_.sequence_max) {
      return (*policy_.sequence_max + expected_rounding_) *
             size_.sequence_max[static_cast<std::size_t>(block.origin.n)];
    }
    if (policy_.rtol) return *policy_.atol + *policy_.rtol * std::abs(expected);
    return 7 * *policy_.tensor_rms * size_.rms;
  }

  const Policy& policy_;
  double expected_rounding_;
  ExpectedSize size_;
};

template <class Judge>
void judge_blocks(const std::vector<Block>& blocks, Judge judge, Tally& tally, bool stop_early) {
  for (const Block& block : blocks) {
    judge.block(block, tally);
    if (stop_early && !tally.may_pass()) return;
  }
  judge.whole(tally);
}

TensorReport judged_report(OutputKind kind, const JudgedCase& judged, const Tensor& expected,
                           const Tensor& got, bool stop_early) {
  Tally tally(kind, got.dtype());
  const Tensor* sigma = judged.policy.deviations ? sigma_of(*judged.deviations, kind) : nullptr;
  const auto blocks = blocks_of(kind, judged.semantics, {expected, got, sigma}, judged.first_head);
  if (judged.policy.deviations) {
    judge_blocks(blocks, SigmaJudge(kind, judged, expected.dtype()), tally, stop_early);
  } else {
    judge_blocks(blocks, SizeJudge(judged, expected.dtype(), blocks), tally, stop_early);
  }
  return tally.conclude();
}

}  // namespace

TensorReport judge_tensor(OutputKind kind, const JudgedCase& judged, const Tensor& expected,
                          const Tensor& got) {
  return judged_report(kind, judged, expected, got, false);
}

bool accepts(OutputKind kind, const JudgedCase& judged, const Tensor& expected, const Tensor& got) {
  return judged_report(kind, judged, expected, got, true).passed;
}

}  // namespace kda::harness
