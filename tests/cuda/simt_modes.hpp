#pragma once

#include "cuda/simt/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kda::cuda {

/// A way to run a grid, with the name that tests print.
struct Mode {
  std::string name;
  simt::Order order;
  simt::CopyMode copies;

  [[nodiscard]] simt::Options options(std::uint64_t seed, unsigned workers = 0) const {
    return {.order = order, .seed = seed, .copies = copies, .workers = workers};
  }
};

/// One mode for every order, with both extremes of cp.async for the strongest.
inline std::vector<Mode> all_modes() {
  using simt::CopyMode;
  using simt::Order;
  return {{"in order, late", Order::kInOrder, CopyMode::kLate},
          {"reverse, eager", Order::kReverse, CopyMode::kEager},
          {"random, late", Order::kRandom, CopyMode::kLate},
          {"random, random", Order::kRandom, CopyMode::kRandom},
          {"pct, late", Order::kPct, CopyMode::kLate},
          {"pct, eager", Order::kPct, CopyMode::kEager}};
}

}  // namespace kda::cuda
