#include "harness/compare/sigma_use.hpp"

#include <cmath>
#include <limits>

namespace kda::harness {
namespace {

double per(double sum, std::int64_t count) noexcept {
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

}  // namespace

void SigmaSums::merge(const SigmaSums& other) noexcept {
  count += other.count;
  rows += other.rows;
  z2 += other.z2;
  signed_z += other.signed_z;
  sigma2 += other.sigma2;
  exact2 += other.exact2;
  ruled += other.ruled;
  ruled_rows += other.ruled_rows;
  ruled_z += other.ruled_z;
}

double SigmaSums::rms() const noexcept { return std::sqrt(per(z2, count)); }

double SigmaSums::mean() const noexcept { return per(signed_z, count); }

double SigmaSums::ruled_mean() const noexcept { return per(ruled_z, ruled); }

double SigmaSums::rms_limit(const DeviationLimits& limits) const noexcept {
  return limits.group + limits.group_small / std::sqrt(static_cast<double>(rows));
}

double SigmaSums::rms_share(const DeviationLimits& limits) const noexcept {
  return rows > 0 ? rms() / rms_limit(limits) : 0;
}

double SigmaSums::bias_limit(const DeviationLimits& limits) const noexcept {
  return limits.bias + limits.bias_small / std::sqrt(static_cast<double>(ruled_rows));
}

std::optional<double> SigmaSums::bias_share(const DeviationLimits& limits) const noexcept {
  if (ruled < limits.bias_elements) return std::nullopt;
  return std::abs(ruled_mean()) / bias_limit(limits);
}

void Share::raise(double other, const std::string& where) {
  // A share that is no number counts as infinite: it must neither pass nor be overtaken.
  if (std::isnan(other)) other = std::numeric_limits<double>::infinity();
  if (!(other > share)) return;
  share = other;
  place = where;
}

void SigmaUse::raise_bias(double share, const std::string& where) {
  if (!bias) bias.emplace();
  bias->raise(share, where);
}

double SigmaUse::resolution(const DeviationLimits& limits) const noexcept {
  return limits.element * std::sqrt(sums.sigma2 / sums.exact2);
}

}  // namespace kda::harness
