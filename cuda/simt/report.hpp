#pragma once

#include "cuda/simt/options.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kda::cuda::simt {

/// What the executor can find wrong with a kernel or its launch.
enum class FaultKind : std::uint8_t {
  kBadLaunch,           ///< grid, block or shared memory beyond the device's limits
  kBadArgument,         ///< a primitive was given what its instruction does not allow
  kBarrierDivergent,    ///< threads of a block wait in different barriers
  kBarrierAbandoned,    ///< a thread exited while, or before, others wait for it
  kWarpDivergent,       ///< lanes of a warp are in different collectives
  kBadMask,             ///< own or source lane missing, or a lane that does not exist
  kDeadlock,            ///< every thread left waits
  kSharedOverRequest,   ///< more shared memory taken than the launch asked for
  kSharedOutOfBounds,   ///< outside every shared array, or across the end of one
  kSharedUnwritten,     ///< read of a byte nobody wrote
  kSharedInFlight,      ///< access to a byte that a cp.async may be writing
  kGlobalOutOfBounds,   ///< outside every buffer passed, or across the end of one
  kGlobalReadOnly,      ///< write to an input
  kGuardBand,           ///< bytes beside a buffer changed behind the primitives' back
  kMisaligned,          ///< address not a multiple of the access size
  kCopyInFlightAtExit,  ///< a thread exits with cp.async it never waited for
  kStackOverflow,       ///< a thread's local variables and calls need more than its stack
};

[[nodiscard]] std::string_view name(FaultKind kind) noexcept;

/// One fault, with the thread that stumbled over it. For kDeadlock that is the first thread still
/// waiting; kBadLaunch and kGuardBand have no thread. They and kStackOverflow have no line (0).
struct Report {
  FaultKind kind = FaultKind::kBadLaunch;
  std::string kernel;
  Dim3 block{0, 0, 0};
  Dim3 thread{0, 0, 0};
  std::string file;  ///< base name
  int line = 0;
  std::string detail;

  /// "kernel NAME block (x,y,z) thread (x,y,z) at FILE:LINE: KIND: DETAIL"
  [[nodiscard]] std::string text() const;
};

}  // namespace kda::cuda::simt
