#pragma once

#include <cstddef>
#include <cstdint>

namespace kda::cuda::simt {

/// Extent of a grid or block, or a place in one.
struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// Which of the threads that can run is run next. Every order is one that a GPU may take; a kernel
/// whose result depends on it has a race.
enum class Order : std::uint8_t {
  kInOrder,  ///< round robin by thread number
  kReverse,  ///< round robin, backward
  kRandom,   ///< uniform, with preemption at primitives
  kPct,      ///< random priorities of warps and lanes, changed at random primitives
};

/// When a cp.async writes its destination.
enum class CopyMode : std::uint8_t {
  kLate,    ///< at the wait, as late as allowed: finds missing waits and early reads
  kEager,   ///< at once, as early as allowed: finds destinations that are still being read
  kRandom,  ///< each copy one of both
};

struct Mutation;
class SiteLog;

/// How a grid is run. Correct kernels give the same bits under all of them.
struct Options {
  Order order = Order::kInOrder;
  std::uint64_t seed = 1;  ///< of kRandom, kPct and CopyMode::kRandom
  CopyMode copies = CopyMode::kLate;
  unsigned workers = 0;  ///< OS threads that run blocks; 0 = one per core
  /// A fault to inject (mutation.hpp), which must outlive the launch; nullptr = run as written.
  const Mutation* mutation = nullptr;
  /// Gets the sites that the launch comes by; wants workers = 1.
  SiteLog* sites = nullptr;
};

/// What is launched. `name` appears in reports and must outlive the launch.
struct LaunchConfig {
  const char* name = "kernel";
  Dim3 grid;
  Dim3 block;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory asked for
};

/// Limits of the devices the kernels are written for (compute capability 8.0 to 10.0).
inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kMaxThreads = 1024;
inline constexpr unsigned kMaxWarps = kMaxThreads / kWarpSize;
inline constexpr unsigned kMaxGridX = 0x7FFFFFFF;
inline constexpr unsigned kMaxGridYz = 65535;
inline constexpr std::size_t kMaxSharedBytes =
    std::size_t{227} * 1024;  ///< dynamic and static together
inline constexpr std::size_t kMaxStaticSharedBytes =
    std::size_t{48} * 1024;  ///< arrays sized at compile time

}  // namespace kda::cuda::simt
