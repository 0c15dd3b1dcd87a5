#pragma once

#include <cstdint>

namespace kda::cuda::simt {

/// Traffic of warp-level shared-memory instructions.
///
/// A wavefront serves up to 32 banks of 4 bytes. Lanes are served together in groups of 32 (up to
/// 4-byte accesses), 16 (8-byte) or 8 (16-byte, and each matrix of an ldmatrix); lanes of a group
/// that want different words of one bank need further wavefronts, which are `conflicts`.
struct SharedTraffic {
  std::uint64_t requests = 0;    ///< warp-level instructions
  std::uint64_t bytes = 0;       ///< asked for by all lanes together
  std::uint64_t wavefronts = 0;  ///< needed
  std::uint64_t conflicts = 0;   ///< of them, those that no conflict-free pattern would need

  bool operator==(const SharedTraffic&) const = default;
  SharedTraffic& operator+=(const SharedTraffic& o) {
    requests += o.requests;
    bytes += o.bytes;
    wavefronts += o.wavefronts;
    conflicts += o.conflicts;
    return *this;
  }
};

/// Traffic of warp-level global-memory instructions, before any cache.
struct GlobalTraffic {
  std::uint64_t requests = 0;  ///< warp-level instructions
  std::uint64_t sectors = 0;   ///< 32-byte sectors touched, each counted once a request
  std::uint64_t bytes = 0;     ///< distinct bytes used of these sectors

  bool operator==(const GlobalTraffic&) const = default;
  GlobalTraffic& operator+=(const GlobalTraffic& o) {
    requests += o.requests;
    sectors += o.sectors;
    bytes += o.bytes;
    return *this;
  }
};

/// What a launch did. Exact and the same for every order, seed and number of workers: lanes of a
/// warp-level access are put together by source line and by how often the lane has been there since
/// its warp last converged (a collective of all its lanes, or a barrier).
struct Counters {
  std::uint64_t blocks = 0;

  // Warp-level instructions.
  std::uint64_t mma = 0;
  std::uint64_t ldmatrix = 0;
  std::uint64_t movmatrix = 0;
  std::uint64_t shuffles = 0;
  std::uint64_t votes = 0;
  std::uint64_t warp_barriers = 0;

  std::uint64_t block_barriers = 0;  ///< completed, counted once a block
  std::uint64_t named_barriers = 0;  ///< completed, counted once a block
  /// Barriers of both kinds that one block completes: the most of any block. Launches add up, as if
  /// each waited for the one before.
  std::uint64_t path_barriers = 0;

  // Operations of single threads.
  std::uint64_t special = 0;  ///< ex2, rcp, rsqrt, ...: what the special-function unit does
  std::uint64_t atomics = 0;
  std::uint64_t copies = 0;       ///< cp.async issued
  std::uint64_t copy_groups = 0;  ///< of cp.async, committed

  SharedTraffic shared_load;  ///< ldmatrix included
  SharedTraffic shared_store;
  SharedTraffic copy_store;  ///< what cp.async writes
  GlobalTraffic global_load;
  GlobalTraffic global_store;
  GlobalTraffic global_atomic;
  GlobalTraffic copy_load;  ///< what cp.async reads

  bool operator==(const Counters&) const = default;
  Counters& operator+=(const Counters& o);
};

}  // namespace kda::cuda::simt
