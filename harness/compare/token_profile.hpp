#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kda::harness {

/// Largest error / bound of `o` against the token's index in its sequence, over all sequences and
/// heads: stretches of `step` tokens, at most kMost of them whatever the length. Shows errors that
/// pile up along the sequence, or sit at chunk bounds.
class TokenProfile {
 public:
  static constexpr std::size_t kMost = 32;

  TokenProfile() = default;
  /// From what `step` and `shares` of another said.
  TokenProfile(std::int64_t step, std::vector<double> shares)
      : step_(step), shares_(std::move(shares)) {}

  void add(std::int64_t token, double share);
  /// As if everything had been added to one.
  void merge(const TokenProfile& other);

  /// Tokens a stretch, a power of two.
  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  /// By stretch, from token 0; empty when nothing was added.
  [[nodiscard]] const std::vector<double>& shares() const noexcept { return shares_; }

 private:
  void coarsen();

  std::int64_t step_ = 1;
  std::vector<double> shares_;
};

}  // namespace kda::harness
