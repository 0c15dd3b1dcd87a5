#pragma once

#include "reference/activated.hpp"
#include "reference/fast.hpp"
#include "reference/fast_kernel.hpp"

#include <cstdint>
#include <vector>

namespace kda::reference {

/// Slices `[begin, end)` of `kColumns` value columns of one head of one sequence.
struct SliceRange {
  std::int64_t begin;
  std::int64_t end;
};

/// Runs slices of value columns of one head over a whole sequence. One object per thread; buffers
/// are reused from head to head.
class FastHead {
 public:
  FastHead(const ActivatedReader& reader, const Semantics& semantics, const FastKernel& kernel);

  /// Fills the columns of these slices in o, final_state and h, which already have their sizes.
  void run(SliceRange slices, HeadResult& result);

 private:
  void load_state(SliceRange slices, const HeadResult& result);
  /// Columns of the state into a [K,V] array.
  void store_state(SliceRange slices, double* state) const;
  /// Reads tokens [first, first + count), at most a tile, and prepares their steps. Step by step,
  /// so that what is read never leaves the L1 cache.
  void prepare(const HeadResult& head, std::int64_t first, std::int64_t count);
  void advance(SliceRange slices, std::int64_t first, std::int64_t count, HeadResult& result);

  [[nodiscard]] std::int64_t columns(std::int64_t slice) const;

  const ActivatedReader& reader_;
  const Semantics& semantics_;
  const FastKernel& kernel_;
  ActivatedRows rows_;           ///< of one step
  std::vector<FastStep> steps_;  ///< of one tile
  std::int64_t pitch_;           ///< V up to a whole slice
  /// [tokens of a tile, pitch]: v, then o in its place. Columns beyond V hold zeros.
  std::vector<double> values_;
  std::vector<ColumnRow> state_;  ///< [slices,K]
};

}  // namespace kda::reference
