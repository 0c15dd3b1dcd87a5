#include "harness/compare/compare_sigma.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// RMS of the relative error of rounding to nearest, in unit roundoffs, for mantissas spread evenly
/// on a log scale: sqrt(1/3) * sqrt(3 / (8 ln 2)).
constexpr double kRoundingRms = 0.4248;

double square(double x) { return x * x; }

/// Whether `got` is `exact`, rounded once to a format.
bool is_rounded(const reference::Rounding& format, double exact, double got) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16, Dtype::kF32}) {
    if (!(reference::rounding_of(dtype) == format)) continue;
    Tensor one(dtype, {1});
    one.store(0, exact);
    return got == load(one.view(), 0);
  }
  return std::abs(got - exact) <= format.unit * std::abs(exact);  // no dtype: tf32, bf16x2
}

}  // namespace

const Tensor* sigma_of(const CaseDeviations& deviations, OutputKind kind) {
  const auto some = [](const std::optional<Tensor>& t) { return t ? &*t : nullptr; };
  switch (kind) {
    case OutputKind::kO: return &deviations.sigma.o;
    case OutputKind::kFinalState: return some(deviations.sigma.final_state);
    case OutputKind::kH: return some(deviations.sigma.h);
  }
  return nullptr;
}

double widened(double sigma, double exact, Dtype expected, const reference::Formats& formats) {
  if (sigma == 0) return 0;  // equality is demanded
  double variance = square(sigma);
  if (formats.accumulation == reference::kRoundF64) variance *= 2;
  if (expected != Dtype::kF64) {
    variance += square(kRoundingRms * reference::rounding_of(expected).unit * exact);
  }
  return std::sqrt(variance);
}

/// One block as numbers. z = 0 where sigma = 0: such elements are in no group.
struct SigmaJudge::Values {
  const Block& block;
  std::vector<double> exact;
  std::vector<double> got;
  std::vector<double> sigma;
  std::vector<double> z;

  [[nodiscard]] std::size_t at(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * block.cols() + col);
  }
};

SigmaJudge::SigmaJudge(OutputKind kind, const JudgedCase& judged, Dtype expected)
    : kind_(kind),
      judged_(judged),
      limits_(*judged.policy.deviations),
      formats_(judged.deviations->formats),
      expected_(expected),
      // Two f64 results err alike, in whatever direction their common algorithm does.
      tests_bias_(kind == OutputKind::kO && !(formats_.accumulation == reference::kRoundF64)) {}

void SigmaJudge::block(const Block& block, Tally& tally) {
  if (block.rows() == 0 || block.cols() == 0) return;
  Values values{block, to_f64(block.expected), to_f64(block.got), to_f64(block.sigma), {}};
  values.z.resize(values.exact.size());
  for (std::size_t i = 0; i < values.sigma.size(); ++i) {
    // A state before any token is the initial state, whatever was carried beside it.
    const bool untouched = kind_ != OutputKind::kO && block.tokens == 0;
    const double sigma =
        untouched ? 0 : widened(values.sigma[i], values.exact[i], expected_, formats_);
    values.sigma[i] = sigma;
    if (sigma != 0 && values.exact[i] != values.got[i])
      values.z[i] = (values.got[i] - values.exact[i]) / sigma;
  }
  elements(values, tally);
  lines(values, tally);
  groups(values, tally);
}

void SigmaJudge::elements(const Values& values, Tally& tally) {
  for (std::size_t i = 0; i < values.exact.size(); ++i) {
    double exact = values.exact[i];
    // A state that is kept in fewer bits is passed on with them.
    if (values.sigma[i] == 0 && values.got[i] != exact &&
        is_rounded(formats_.state, exact, values.got[i])) {
      exact = values.got[i];
    }
    const auto index = static_cast<std::int64_t>(i);
    const double share =
        tally.element(values.block, index, exact, values.got[i], limits_.element * values.sigma[i]);
    if (share > use_.element.share) {
      use_.element.raise(share, to_string(values.block.place(index / values.block.cols(),
                                                             index % values.block.cols())));
    }
  }
  tally.test_elements();
}

void SigmaJudge::lines(const Values& values, Tally& tally) {
  const Block& block = values.block;
  const auto line = [&](std::int64_t length, const auto& at, const char* axis, std::int64_t i) {
    double z2 = 0;
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < length; ++j) {
      if (values.sigma[at(j)] == 0) continue;
      z2 += square(values.z[at(j)]);
      ++count;
    }
    if (count == 0) return;
    const double rms = std::sqrt(z2 / static_cast<double>(count));
    const double share = rms / limits_.row;
    if (!(share <= use_.row.share))
      use_.row.raise(share, fmt::format("{} {}={}", name_of(block), axis, i));
    tally.test(share, [&] {
      return fmt::format("{} {}={}: RMS error of {:.3g} sigma, wanted at most {:.3g}",
                         name_of(block), axis, i, rms, limits_.row);
    });
  };
  const bool is_o = kind_ == OutputKind::kO;
  for (std::int64_t r = 0; r < block.rows(); ++r) {
    line(
        block.cols(), [&](std::int64_t c) { return values.at(r, c); }, is_o ? "t" : "k", r);
  }
  for (std::int64_t c = 0; c < block.cols() && !is_o; ++c) {
    line(
        block.rows(), [&](std::int64_t r) { return values.at(r, c); }, "v", c);
  }
}

SigmaSums SigmaJudge::sums(const Values& values, std::int64_t first_row,
                           std::int64_t last_row) const {
  const double output2 = square(kRoundingRms * formats_.output.unit);
  SigmaSums sums;
  for (std::int64_t r = first_row; r < last_row; ++r) {
    const std::int64_t count = sums.count;
    const std::int64_t ruled = sums.ruled;
    for (std::int64_t c = 0; c < values.block.cols(); ++c) {
      const std::size_t i = values.at(r, c);
      const double sigma = values.sigma[i];
      const double exact = values.exact[i];
      if (sigma == 0) continue;
      const double signed_z = exact == 0 ? 0 : std::copysign(1.0, exact) * values.z[i];
      ++sums.count;
      sums.z2 += square(values.z[i]);
      sums.signed_z += signed_z;
      sums.sigma2 += square(sigma);
      sums.exact2 += square(exact);
      if (!tests_bias_ || !(output2 * square(exact) >= square(sigma) / 2)) continue;
      ++sums.ruled;
      sums.ruled_z += signed_z;
    }
    if (sums.count > count) ++sums.rows;
    if (sums.ruled > ruled) ++sums.ruled_rows;
  }
  return sums;
}

void SigmaJudge::groups(const Values& values, Tally& tally) {
  const Block& block = values.block;
  const auto capped = [&](SigmaSums sums, std::int64_t first, std::int64_t last) {
    const std::int64_t keys = judged_.keys->among(block.origin.n, block.hv, first, last);
    sums.rows = std::min(sums.rows, keys);
    sums.ruled_rows = std::min(sums.ruled_rows, keys);
    return sums;
  };
  const SigmaSums all = sums(values, 0, block.rows());
  group(capped(all, 0, block.tokens), name_of(block), tally);
  const std::int64_t chunk = judged_.semantics.chunk;
  for (std::int64_t first = 0;
       kind_ == OutputKind::kO && block.rows() > chunk && first < block.rows(); first += chunk) {
    const std::int64_t last = std::min(first + chunk, block.rows());
    group(capped(sums(values, first, last), first, last),
          fmt::format("{} t={}..{}", name_of(block), first, last - 1), tally);
  }
  use_.sums.merge(all);
}

void SigmaJudge::group(const SigmaSums& sums, const std::string& where, Tally& tally) {
  const double rms = sums.rms_share(limits_);
  use_.group.raise(rms, where);
  tally.test(rms, [&] {
    return fmt::format("{}: RMS error of {:.3g} sigma, wanted at most {:.3g}", where, sums.rms(),
                       sums.rms_limit(limits_));
  });
  const std::optional<double> bias = sums.bias_share(limits_);
  if (!bias) return;
  use_.raise_bias(*bias, where);
  tally.test(*bias, [&] {
    return fmt::format(
        "{}: mean error away from 0 of {:.3g} sigma, wanted at most {:.3g} either way", where,
        sums.ruled_mean(), sums.bias_limit(limits_));
  });
}

void SigmaJudge::whole(Tally& tally) {
  const std::int64_t keys = judged_.keys->all();
  use_.sums.rows = std::min(use_.sums.rows, keys);
  use_.sums.ruled_rows = std::min(use_.sums.ruled_rows, keys);
  group(use_.sums, "all", tally);
  tally.report().use = use_;
}

}  // namespace kda::harness
