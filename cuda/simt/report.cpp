#include "cuda/simt/report.hpp"

namespace kda::cuda::simt {
namespace {

std::string place(const Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

}  // namespace

std::string_view name(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::kBadLaunch: return "bad launch";
    case FaultKind::kBadArgument: return "bad argument";
    case FaultKind::kBarrierDivergent: return "divergent barrier";
    case FaultKind::kBarrierAbandoned: return "abandoned barrier";
    case FaultKind::kWarpDivergent: return "divergent warp";
    case FaultKind::kBadMask: return "bad mask";
    case FaultKind::kDeadlock: return "deadlock";
    case FaultKind::kSharedOverRequest: return "shared memory over the request";
    case FaultKind::kSharedOutOfBounds: return "shared access out of bounds";
    case FaultKind::kSharedUnwritten: return "shared memory never written";
    case FaultKind::kSharedInFlight: return "shared memory with a copy in flight";
    case FaultKind::kGlobalOutOfBounds: return "global access out of bounds";
    case FaultKind::kGlobalReadOnly: return "write to a read-only buffer";
    case FaultKind::kGuardBand: return "guard band changed";
    case FaultKind::kMisaligned: return "misaligned access";
    case FaultKind::kCopyInFlightAtExit: return "exit with copies in flight";
    case FaultKind::kStackOverflow: return "stack overflow";
  }
  return "?";
}

std::string Report::text() const {
  std::string text = "kernel " + kernel;
  if (kind != FaultKind::kBadLaunch && kind != FaultKind::kGuardBand) {
    text += " block " + place(block) + " thread " + place(thread);
  }
  if (line != 0) text += " at " + file + ":" + std::to_string(line);
  return text + ": " + std::string(name(kind)) + ": " + detail;
}

}  // namespace kda::cuda::simt
