#include "harness/compare/compare_tensor.hpp"

#include "harness/compare/compare_blocks.hpp"
#include "harness/compare/policy_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Every row is judged as if it had at least this share of the typical size: a write mixes its
/// error into every key channel that it touches, also into those that have decayed or cancelled to
/// little, and a token reads what is left of larger ones.
constexpr double kStateMixing = 0.4;
constexpr double kOutputMixing = 0.25;

/// error / bound, so that exactly what is <= 1 is accepted.
double share_of(double error, double bound) {
  if (error == 0) return 0;
  return std::isfinite(error) && std::isfinite(bound) ? error / bound : kInf;
}

double rounded_to(Dtype dtype, double x) {
  Tensor one(dtype, {1});
  one.store(0, x);
  return load(one.view(), 0);
}

/// Size of the expected values, which some bounds depend on.
struct ExpectedSize {
  std::vector<double> sequence_max;
  double rms = 0;
};

class TensorJudge {
 public:
  TensorJudge(OutputKind kind, const JudgedCase& judged, const Tensor& expected, const Tensor& got)
      : kind_(kind),
        judged_(judged),
        policy_(judged.policy),
        got_dtype_(got.dtype()),
        expected_dtype_(expected.dtype()),
        blocks_(blocks_of(kind, judged.semantics, expected, got)),
        size_(measure()) {}

  TensorReport judge() {
    for (const Block& block : blocks_) judge_block(block);
    judge_whole();
    conclude();
    return std::move(report_);
  }

 private:
  [[nodiscard]] ExpectedSize measure() const {
    ExpectedSize size;
    size.sequence_max.resize(static_cast<std::size_t>(judged_.semantics.N()));
    double sum = 0;
    std::int64_t count = 0;
    for (const Block& block : blocks_) {
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

  void judge_block(const Block& block) {
    const std::vector<double> expected = to_f64(block.expected);
    const std::vector<double> got = to_f64(block.got);
    std::vector<double> deviation;
    if (policy_.rounding && !is_initial_state(block)) deviation = deviations(block, expected);
    const std::vector<double> bounds = element_bounds(block, expected, deviation);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      judge_element(block, static_cast<std::int64_t>(i), expected[i], got[i], bounds[i]);
    }
    if (!deviation.empty()) judge_groups(block, expected, got, deviation);
  }

  [[nodiscard]] std::vector<double> deviations(const Block& block,
                                               const std::vector<double>& expected) const {
    const Place& at = block.origin;
    const Formats formats{.operands = judged_.problem.q.dtype,
                          .result = got_dtype_,
                          .expected = expected_dtype_,
                          .tokens = block.tokens,
                          .overlap = kind_ == OutputKind::kO
                                         ? judged_.terms.overlap_so_far(at.n, at.hv)
                                         : std::vector{judged_.terms.overlap(at.n, at.hv)}};
    if (kind_ == OutputKind::kO) {
      const auto terms = judged_.terms.output(at.n, at.hv);
      return rounding_deviation(expected, terms, block.cols(), kOutputMixing, formats);
    }
    const auto terms = judged_.terms.state(at.n, at.hv, block.chunks_before - 1);
    return rounding_deviation(expected, terms, block.cols(), kStateMixing, formats);
  }

  /// The state before any token: an implementation has only passed the initial state on.
  [[nodiscard]] bool is_initial_state(const Block& block) const {
    return kind_ != OutputKind::kO && block.chunks_before == 0;
  }

  /// The bound of every element. Where the policy has none per element (fla), seven times what it
  /// allows on RMS average, which only serves to count elements that stand out.
  [[nodiscard]] std::vector<double> element_bounds(const Block& block,
                                                   const std::vector<double>& expected,
                                                   const std::vector<double>& deviation) const {
    std::vector<double> bounds(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double size = std::abs(expected[i]);
      if (policy_.sequence_max) {
        const double most = size_.sequence_max[static_cast<std::size_t>(block.origin.n)];
        bounds[i] = (*policy_.sequence_max + expected_rounding()) * most;
      } else if (policy_.rtol) {
        bounds[i] = *policy_.atol + *policy_.rtol * size;
      } else if (!policy_.rounding) {  // no bound of its own: what the RMS makes implausible
        bounds[i] = 7 * *policy_.tensor_rms * size_.rms;
      } else if (is_initial_state(block)) {  // passed on unchanged, but for its storage
        bounds[i] = absolute_error(expected[i], rounded_to(got_dtype_, expected[i]));
      } else {
        bounds[i] = policy_.rounding->element * deviation[i];
        if (size > size_.rms) bounds[i] = std::min(bounds[i], policy_.rounding->lost_share * size);
      }
    }
    return bounds;
  }

  /// Expected values that are not f64 have been rounded themselves.
  [[nodiscard]] double expected_rounding() const {
    return expected_dtype_ == Dtype::kF64 ? 0 : unit_roundoff(expected_dtype_);
  }

  void judge_element(const Block& block, std::int64_t i, double expected, double got,
                     double bound) {
    report_.metrics.add(got_dtype_, expected, got);
    if (std::isfinite(expected) && !(std::abs(expected) <= bound)) zeros_pass_ = false;
    const double share = share_of(absolute_error(expected, got), bound);
    const std::int64_t row = i / block.cols();
    if (kind_ == OutputKind::kO) report_.tokens.add(row, share);
    if (share == 0 && report_.worst) return;
    const std::int64_t col = i % block.cols();
    const Finding finding{block.place(row, col), expected, got, bound};
    if (!report_.worst || share > worst_share_) {
      worst_share_ = share;
      report_.worst = finding;
      report_.window = window_around(block.expected, block.got, row, col);
    }
    if (share <= 1) return;
    ++report_.metrics.bad;
    if (!report_.first_bad) report_.first_bad = finding;
  }

  /// RMS of error / deviation over rows (of a state: and columns) and over the block.
  void judge_groups(const Block& block, const std::vector<double>& expected,
                    const std::vector<double>& got, const std::vector<double>& deviation) {
    const auto cols = static_cast<std::size_t>(block.cols());
    std::vector<double> by_row(static_cast<std::size_t>(block.rows()));
    std::vector<double> by_col(cols);
    double all = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double z = absolute_error(expected[i], got[i]) / deviation[i];
      by_row[i / cols] += z * z;
      by_col[i % cols] += z * z;
      all += z * z;
    }
    const double row_limit = policy_.rounding->row;
    judge_lines(block, by_row, cols, row_limit, true);
    if (kind_ != OutputKind::kO) judge_lines(block, by_col, by_row.size(), row_limit, false);
    if (expected.empty()) return;
    const double limit =
        policy_.rounding->group +
        policy_.rounding->group_small / std::sqrt(static_cast<double>(by_row.size()));
    const double rms = std::sqrt(all / static_cast<double>(expected.size()));
    test(rms / limit, [&] {
      return fmt::format("{}: RMS error of {:.3g} deviations, wanted at most {:.3g}",
                         block_name(block), rms, limit);
    });
  }

  void judge_lines(const Block& block, const std::vector<double>& sums, std::size_t length,
                   double limit, bool are_rows) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double rms = std::sqrt(sums[i] / static_cast<double>(length));
      test(rms / limit, [&] {
        const char* line = !are_rows ? "v" : kind_ == OutputKind::kO ? "t" : "k";
        return fmt::format("{} {}={}: RMS error of {:.3g} deviations, wanted at most {:.3g}",
                           block_name(block), line, i, rms, limit);
      });
    }
  }

  static std::string block_name(const Block& block) {
    const Place& at = block.origin;
    const std::string chunk = at.chunk ? fmt::format("chunk={} ", *at.chunk) : "";
    return fmt::format("{}n={} hv={}", chunk, at.n, at.hv);
  }

  void judge_whole() {
    if (policy_.tensor_rms) {
      const double ratio = report_.metrics.rms_ratio();
      test(ratio / *policy_.tensor_rms, [&] {
        return fmt::format("RMS(error) / RMS(expected) = {:.3g}, wanted at most {:.3g}", ratio,
                           *policy_.tensor_rms);
      });
    }
    const bool element_counts = policy_.rounding || !policy_.tensor_rms;
    if (element_counts && report_.worst) {
      test(worst_share_, [&] {
        const Finding& worst = *report_.worst;
        return fmt::format("{}: wanted {:.9g} within {:.3g}, got {:.9g}", to_string(worst.place),
                           worst.expected, worst.bound, worst.got);
      });
    }
  }

  /// Notes a test by its share of the limit; `describe` is called for the largest one over 1.
  template <class Describe>
  void test(double share, const Describe& describe) {
    if (!(share <= 1) && (report_.detail.empty() || share > report_.used_share)) {
      report_.detail = describe();
    }
    // A share that is no number counts as infinite: it must neither pass nor be overtaken.
    report_.used_share = std::max(report_.used_share, std::isnan(share) ? kInf : share);
  }

  void conclude() {
    report_.name = name(kind_);
    report_.dtype = got_dtype_;
    const Metrics& metrics = report_.metrics;
    const bool counts = kind_ == OutputKind::kO ? metrics.compared > 0 : metrics.max_expected > 0;
    report_.zeros_would_pass = zeros_pass_ && counts;
    if (metrics.non_finite > 0) {
      report_.reason = "non_finite";
      report_.used_share = kInf;
      report_.detail = fmt::format("{}: wanted {:.9g}, got {:.9g}; {} such elements",
                                   to_string(report_.worst->place), report_.worst->expected,
                                   report_.worst->got, metrics.non_finite);
    } else if (!(report_.used_share <= 1)) {
      report_.reason = "over_bound";
    }
    report_.passed = report_.reason.empty();
  }

  OutputKind kind_;
  const JudgedCase& judged_;
  const Policy& policy_;
  Dtype got_dtype_;
  Dtype expected_dtype_;
  std::vector<Block> blocks_;
  ExpectedSize size_;

  TensorReport report_;
  double worst_share_ = 0;
  bool zeros_pass_ = true;
};

}  // namespace

TensorReport judge_tensor(OutputKind kind, const JudgedCase& judged, const Tensor& expected,
                          const Tensor& got) {
  return TensorJudge(kind, judged, expected, got).judge();
}

}  // namespace kda::harness
