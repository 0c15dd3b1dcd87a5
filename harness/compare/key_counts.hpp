#pragma once

#include "reference/types/problem.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace kda::harness {

/// Counts different keys. Equal keys make equal roundings: a group of results holds no more
/// independent rows than the tokens behind it have different keys.
class KeyCounts {
 public:
  /// `keys` [B,T,HV]: one number per token, equal for equal keys (reference::Deviations::keys).
  /// Keeps references to both.
  KeyCounts(const Semantics& semantics, const std::vector<std::uint64_t>& keys);

  /// Among tokens [first, last) of sequence n, value head hv; `first` = 0 is looked up.
  [[nodiscard]] std::int64_t among(std::int64_t n, std::int64_t hv, std::int64_t first,
                                   std::int64_t last);
  /// Among all tokens of all sequences and heads.
  [[nodiscard]] std::int64_t all();

 private:
  [[nodiscard]] std::vector<std::uint64_t> range(std::int64_t n, std::int64_t hv,
                                                 std::int64_t first, std::int64_t last) const;
  [[nodiscard]] const std::vector<std::int64_t>& prefixes(std::int64_t n, std::int64_t hv);

  const Semantics& semantics_;
  const std::vector<std::uint64_t>& keys_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> prefixes_;
  std::int64_t all_ = -1;
};

}  // namespace kda::harness
