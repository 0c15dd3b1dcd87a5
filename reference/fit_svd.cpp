#include "reference/fit_svd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Dense>

namespace kda::reference {
namespace {

using Wide = long double;
using Design = Eigen::Matrix<Wide, Eigen::Dynamic, Eigen::Dynamic>;
using Vector = Eigen::Matrix<Wide, Eigen::Dynamic, 1>;
using Small = Eigen::Matrix<Wide, 3, 3>;
using Triple = Eigen::Matrix<Wide, 3, 1>;
using Svd = Eigen::JacobiSVD<Design, Eigen::ColPivHouseholderQRPreconditioner>;

/// The lengths as u = (l - centre) / half in [-1, 1].
struct Axis {
  Wide centre = 0;
  Wide half = 1;
};

Axis axis_of(std::span<const std::int64_t> lengths) {
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  return {static_cast<Wide>(*low + *high) / 2, static_cast<Wide>(*high - *low) / 2};
}

/// Legendre polynomials P0, P1, P2 of u.
Design legendre_design(std::span<const std::int64_t> lengths, const Axis& axis) {
  Design design(static_cast<Eigen::Index>(lengths.size()), 3);
  for (Eigen::Index i = 0; i < design.rows(); ++i) {
    const Wide length = static_cast<Wide>(lengths[static_cast<std::size_t>(i)]);
    const Wide u = (length - axis.centre) / axis.half;
    design.row(i) << 1, u, (3 * u * u - 1) / 2;
  }
  return design;
}

/// Columns: the powers 1, l, l^2 of each polynomial, so that {c, b, a} = powers * legendre.
Small legendre_powers(const Axis& axis) {
  const Wide half = axis.half;
  const Wide shift = -axis.centre / half;
  Small powers = Small::Zero();
  powers(0, 0) = 1;
  powers(0, 1) = shift;
  powers(1, 1) = 1 / half;
  powers(0, 2) = (3 * shift * shift - 1) / 2;
  powers(1, 2) = 3 * shift / half;
  powers(2, 2) = 3 / (2 * half * half);
  return powers;
}

/// {c, b, a} of the coefficients of the polynomials. Where a sum is no more than the rounding of
/// its terms it is 0; no term is known better than the rounding of the largest latency.
Coefficients to_coefficients(const Small& powers, const Triple& legendre, Wide largest) {
  const Triple sums = powers * legendre;
  const Triple terms = powers.cwiseAbs() * legendre.cwiseAbs().cwiseMax(largest);
  const auto coefficient = [&](Eigen::Index i) {
    const Wide noise = 64 * std::numeric_limits<Wide>::epsilon() * terms(i);
    return std::abs(sums(i)) <= noise ? 0.0 : static_cast<double>(sums(i));
  };
  return {coefficient(2), coefficient(1), coefficient(0)};
}

FitQuality assess(const Svd& svd, const Small& powers, const Vector& y, const Vector& residuals) {
  FitQuality out;
  const Wide left = residuals.squaredNorm();
  const Wide total = (y.array() - y.mean()).matrix().squaredNorm();
  out.r_squared =
      total > 0 ? static_cast<double>(1 - left / total) : std::numeric_limits<double>::quiet_NaN();
  const Wide sd = std::sqrt(left / static_cast<Wide>(y.size() - 3));
  out.residual_sd = static_cast<double>(sd);
  const Triple sigma = svd.singularValues();
  const Small v = svd.matrixV();
  const Small spread = powers * v * sigma.cwiseInverse().asDiagonal();
  const auto error_of = [&](Eigen::Index i) {
    return static_cast<double>(sd * spread.row(i).norm());
  };
  out.standard_errors = {error_of(2), error_of(1), error_of(0)};
  // The design is X * powers with X the unscaled [1, l, l^2], so |X| = |sigma V^T powers^-1|.
  const Small unscaled = sigma.asDiagonal() * v.transpose() * powers.inverse();
  out.condition = static_cast<double>(unscaled.jacobiSvd().singularValues()(0) *
                                      spread.jacobiSvd().singularValues()(0));
  out.residuals.resize(static_cast<std::size_t>(residuals.size()));
  std::transform(residuals.begin(), residuals.end(), out.residuals.begin(),
                 [](Wide residual) { return static_cast<double>(residual); });
  return out;
}

}  // namespace

FitResult fit_quadratic_svd(std::span<const std::int64_t> seq_lens,
                            std::span<const double> latencies) {
  if (auto bad = check_samples(seq_lens, latencies)) return *std::move(bad);
  const auto lengths = seq_lens.subspan(1);
  const Axis axis = axis_of(lengths);
  const Design design = legendre_design(lengths, axis);
  Vector y(design.rows());
  std::copy(latencies.begin() + 1, latencies.end(), y.begin());

  Svd svd(design, Eigen::ComputeThinU | Eigen::ComputeThinV);
  svd.setThreshold(0);  // all singular values count: the rank was decided by counting lengths
  const Triple legendre = svd.solve(y);
  const Small powers = legendre_powers(axis);
  const Wide largest = y.cwiseAbs().maxCoeff();
  const Coefficients raw = to_coefficients(powers, legendre, largest);
  const Wide curvature = static_cast<Wide>(raw.a) * axis.half * axis.half;
  FitResult out =
      judge_coefficients(raw, static_cast<double>(curvature), static_cast<double>(largest));
  if (out.raw) out.quality = assess(svd, powers, y, y - design * legendre);
  return out;
}

}  // namespace kda::reference
