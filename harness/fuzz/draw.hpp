#pragma once

#include "harness/case/case_line.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <tuple>
#include <vector>

namespace kda::harness {

/// Draws case lines that the contracts accept over the whole option space: op, dtypes, gate, norm,
/// form of beta, state layout, states, packing, lengths, heads, head dimensions, family, scale,
/// chunk size. While a pair of options has not stood in one line, lines are chosen that bring as
/// many new pairs as can be found; after that they are random. The same seed gives the same lines.
class CaseDraw {
 public:
  /// Throws kImplementationUnsupported when no op is a KDA call.
  CaseDraw(std::span<const Op> ops, std::uint64_t seed);

  [[nodiscard]] CaseLine next();

  /// Pairs of options that have stood in one line.
  [[nodiscard]] std::size_t pairs() const { return seen_.size(); }
  /// True once 200 draws in a row brought no new pair.
  [[nodiscard]] bool all_pairs() const { return all_pairs_; }

  static constexpr std::size_t kAxes = 18;
  using Choice = std::array<int, kAxes>;

 private:
  using Pair = std::tuple<std::size_t, int, std::size_t, int>;

  [[nodiscard]] Choice random_choice();
  [[nodiscard]] std::vector<Pair> new_pairs(const Choice& choice) const;
  [[nodiscard]] int uniform(int count);

  std::vector<Op> ops_;
  std::mt19937_64 random_;
  std::set<Pair> seen_;
  bool all_pairs_ = false;
};

}  // namespace kda::harness
