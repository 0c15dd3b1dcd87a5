#pragma once

#include "cuda/simt/options.hpp"
#include "cuda/simt/site.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Faults put into a kernel without recompiling it: since every barrier, access, copy, shuffle and
// matrix instruction goes through a primitive that knows its source line, the executor can leave
// one of them out or do it wrongly. Whoever tests a kernel should then see it fail; a mutation that
// nothing sees is a hole in the tests. Off unless Options ask for it.

namespace kda::cuda::simt {

/// What stands at a site.
enum class Primitive : std::uint8_t {
  kBlockBarrier,
  kNamedBarrier,
  kWarpBarrier,
  kSharedLoad,
  kSharedStore,
  kGlobalLoad,
  kGlobalStore,
  kGlobalAtomic,
  kCopy,
  kPartialCopy,  ///< a copy that reads less than it writes
  kCopyWait,
  kShuffle,
  kVote,
  kLdmatrix,
  kMovmatrix,
  kMma,
};

/// What is done wrongly there, by every thread of every block.
enum class Injected : std::uint8_t {
  kDrop,       ///< not done at all; a load reads zeros, a movmatrix does not transpose
  kShift,      ///< of an access or a copy's source: one element of its own size further on
  kFull,       ///< of a partial copy: reads its whole width
  kWrongLane,  ///< of an xor shuffle: one's own lane; of others: the neighbour of the lane meant
  kFlip,       ///< of a vote: the opposite; of an ldmatrix: transposed or not
  kSwap,       ///< of an mma: registers 1 and 2 of a in each other's place
};

[[nodiscard]] std::string_view name(Primitive primitive) noexcept;
[[nodiscard]] std::string_view name(Injected injected) noexcept;

/// One injected fault. Sites are those of this process: take them from a SiteLog.
struct Mutation {
  Primitive primitive = Primitive::kBlockBarrier;
  Injected injected = Injected::kDrop;
  Site site;

  /// "drop block barrier at FILE:LINE", with the file's base name.
  [[nodiscard]] std::string text() const;
};

/// Where a launch calls which primitive, in the order of the first call. For launches with one
/// worker.
class SiteLog {
 public:
  struct Entry {
    Primitive primitive = Primitive::kBlockBarrier;
    Site site;
  };

  void add(Primitive primitive, Site site);
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Every fault that can be injected at these sites.
  [[nodiscard]] std::vector<Mutation> mutations() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace kda::cuda::simt
