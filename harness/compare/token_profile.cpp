#include "harness/compare/token_profile.hpp"

#include <algorithm>

namespace kda::harness {

void TokenProfile::coarsen() {
  step_ *= 2;
  for (std::size_t i = 0; i < shares_.size(); i += 2) {
    const double next = i + 1 < shares_.size() ? shares_[i + 1] : 0;
    shares_[i / 2] = std::max(shares_[i], next);
  }
  shares_.resize((shares_.size() + 1) / 2);
}

void TokenProfile::add(std::int64_t token, double share) {
  while (token / step_ >= static_cast<std::int64_t>(kMost)) coarsen();
  const auto stretch = static_cast<std::size_t>(token / step_);
  if (stretch >= shares_.size()) shares_.resize(stretch + 1);
  shares_[stretch] = std::max(shares_[stretch], share);
}

void TokenProfile::merge(const TokenProfile& other) {
  for (std::size_t i = 0; i < other.shares_.size(); ++i) {
    // A coarser stretch counts where it begins; this one is made as coarse first.
    while (step_ < other.step_) coarsen();
    add(static_cast<std::int64_t>(i) * other.step_, other.shares_[i]);
  }
}

}  // namespace kda::harness
