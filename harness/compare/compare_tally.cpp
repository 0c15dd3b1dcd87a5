#include "harness/compare/compare_tally.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// error / bound, so that exactly what is <= 1 is accepted.
double share_of(double error, double bound) {
  if (error == 0) return 0;
  return std::isfinite(error) && std::isfinite(bound) ? error / bound : kInf;
}

}  // namespace

Tally::Tally(OutputKind kind, Dtype got) : kind_(kind), got_(got) {}

double Tally::element(const Block& block, std::int64_t i, double expected, double got,
                      double bound) {
  report_.metrics.add(got_, expected, got);
  const double share = share_of(absolute_error(expected, got), bound);
  const std::int64_t row = i / block.cols();
  if (kind_ == OutputKind::kO) report_.tokens.add(row, share);
  if (share == 0 && report_.worst) return share;
  const std::int64_t col = i % block.cols();
  const Finding finding{block.place(row, col), expected, got, bound};
  if (!report_.worst || share > worst_share_) {
    worst_share_ = share;
    report_.worst = finding;
    report_.window = window_around(block.expected, block.got, row, col);
  }
  if (share <= 1) return share;
  ++report_.metrics.bad;
  if (!report_.first_bad) report_.first_bad = finding;
  return share;
}

void Tally::test_elements() {
  if (!report_.worst) return;
  test(worst_share_, [&] {
    const Finding& worst = *report_.worst;
    return fmt::format("{}: wanted {:.9g} within {:.3g}, got {:.9g}", to_string(worst.place),
                       worst.expected, worst.bound, worst.got);
  });
}

bool Tally::may_pass() const { return report_.metrics.non_finite == 0 && report_.used_share <= 1; }

TensorReport Tally::conclude() {
  report_.name = name(kind_);
  report_.dtype = got_;
  if (report_.metrics.non_finite > 0) {
    report_.reason = "non_finite";
    report_.used_share = kInf;
    report_.detail = fmt::format("{}: wanted {:.9g}, got {:.9g}; {} such elements",
                                 to_string(report_.worst->place), report_.worst->expected,
                                 report_.worst->got, report_.metrics.non_finite);
  } else if (!(report_.used_share <= 1)) {
    report_.reason = "over_bound";
  }
  report_.passed = report_.reason.empty();
  return std::move(report_);
}

void Tally::note(double share) {
  // A share that is no number counts as infinite: it must neither pass nor be overtaken.
  report_.used_share = std::max(report_.used_share, std::isnan(share) ? kInf : share);
}

std::string name_of(const Block& block) {
  const Place& at = block.origin;
  const std::string chunk = at.chunk ? fmt::format("chunk={} ", *at.chunk) : "";
  return fmt::format("{}n={} hv={}", chunk, at.n, at.hv);
}

}  // namespace kda::harness
