#pragma once

#include "cuda/simt/counters.hpp"
#include "cuda/simt/options.hpp"
#include "cuda/simt/site.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kda::cuda::simt {

/// Kinds of memory access that are counted apart.
enum class Access : std::uint8_t {
  kSharedLoad,
  kSharedStore,
  kGlobalLoad,
  kGlobalStore,
  kGlobalAtomic,
  kCopyLoad,
  kCopyStore,
};

/// The bytes each lane of a warp asks for in one instruction.
struct WarpAccess {
  std::uint32_t lanes = 0;
  std::uint8_t bytes[kWarpSize] = {};
  std::uintptr_t address[kWarpSize] = {};
};

/// Adds one warp-level access to the counters. `width` is the size the instruction names.
void count_shared(const WarpAccess& access, unsigned width, SharedTraffic& traffic);
void count_global(const WarpAccess& access, GlobalTraffic& traffic);

/// Puts the accesses of a warp's lanes, which arrive one by one in any order, together again:
/// accesses with the same source line, kind and width, that are the n-th of their lane there since
/// the warp last converged, are one instruction.
class WarpTraffic {
 public:
  void record(Access kind, const void* address, unsigned bytes, unsigned width, Site site,
              unsigned lane);

  /// The warp has converged: what was recorded is complete. Counts and forgets it.
  void flush(Counters& counters);

  /// Forgets without counting.
  void discard();

 private:
  struct Entry {
    Site site;
    Access kind = Access::kSharedLoad;
    unsigned width = 0;  ///< 0 marks a free place
    std::uint32_t times[kWarpSize] = {};
    std::size_t used = 0;
    std::vector<WarpAccess> accesses;
  };

  Entry& entry(Site site, Access kind, unsigned width);
  void grow();
  [[nodiscard]] std::size_t place(Site site, Access kind, unsigned width) const;

  std::vector<Entry> table_;  ///< open addressing; sites are kept, they come again
  std::size_t entries_ = 0;
  std::vector<std::size_t> active_;  ///< places with accesses since the last flush
};

}  // namespace kda::cuda::simt
