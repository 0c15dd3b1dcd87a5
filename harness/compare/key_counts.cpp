#include "harness/compare/key_counts.hpp"

#include <algorithm>
#include <unordered_set>

namespace kda::harness {
namespace {

std::int64_t distinct(std::vector<std::uint64_t> keys) {
  std::ranges::sort(keys);
  return std::unique(keys.begin(), keys.end()) - keys.begin();
}

}  // namespace

KeyCounts::KeyCounts(const Semantics& semantics, const std::vector<std::uint64_t>& keys)
    : semantics_(semantics), keys_(keys) {}

std::int64_t KeyCounts::among(std::int64_t n, std::int64_t hv, std::int64_t first,
                              std::int64_t last) {
  if (first == 0) return prefixes(n, hv)[static_cast<std::size_t>(last)];
  return distinct(range(n, hv, first, last));
}

std::int64_t KeyCounts::all() {
  if (all_ >= 0) return all_;
  std::unordered_set<std::uint64_t> seen;
  for (std::int64_t n = 0; n < semantics_.N(); ++n) {
    const std::int64_t length = semantics_.sequences[static_cast<std::size_t>(n)].length();
    for (std::int64_t hv = 0; hv < semantics_.HV; ++hv) {
      const auto keys = range(n, hv, 0, length);
      seen.insert(keys.begin(), keys.end());
    }
  }
  all_ = static_cast<std::int64_t>(seen.size());
  return all_;
}

std::vector<std::uint64_t> KeyCounts::range(std::int64_t n, std::int64_t hv, std::int64_t first,
                                            std::int64_t last) const {
  const Sequence& sequence = semantics_.sequences[static_cast<std::size_t>(n)];
  const std::int64_t begin = sequence.b * semantics_.T + sequence.begin;
  std::vector<std::uint64_t> keys;
  for (std::int64_t t = first; t < last; ++t) {
    keys.push_back(keys_[static_cast<std::size_t>((begin + t) * semantics_.HV + hv)]);
  }
  return keys;
}

/// Entry t: different keys among the first t tokens.
const std::vector<std::int64_t>& KeyCounts::prefixes(std::int64_t n, std::int64_t hv) {
  std::vector<std::int64_t>& counts = prefixes_[{n, hv}];
  if (!counts.empty()) return counts;
  counts.push_back(0);
  std::unordered_set<std::uint64_t> seen;
  const std::int64_t length = semantics_.sequences[static_cast<std::size_t>(n)].length();
  for (const std::uint64_t key : range(n, hv, 0, length)) {
    seen.insert(key);
    counts.push_back(static_cast<std::int64_t>(seen.size()));
  }
  return counts;
}

}  // namespace kda::harness
