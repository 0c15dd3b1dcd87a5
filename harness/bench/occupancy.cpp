#include "harness/bench/occupancy.hpp"

namespace kda::harness {
namespace {

constexpr int kWarpSize = 32;
constexpr int kMaxWarps = 64;
constexpr int kMaxBlocks = 32;
constexpr int kPartitions = 4;  ///< of a multiprocessor; each has a quarter of the registers
constexpr int kRegistersPerPartition = 16384;
constexpr int kRegisterUnit = 256;  ///< allocated a warp
constexpr std::int64_t kSharedUnit = 128;
constexpr std::int64_t kSharedReserved = 1024;  ///< a block, by the system

std::optional<std::int64_t> shared_of(std::string_view arch) {
  if (arch == "sm_80") return 164 * 1024;
  if (arch == "sm_90" || arch == "sm_90a") return 228 * 1024;
  if (arch == "sm_100" || arch == "sm_100a") return 228 * 1024;
  return std::nullopt;
}

template <class T>
T round_up(T value, T unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::optional<Occupancy> occupancy(std::string_view arch, const BlockNeeds& needs) {
  const auto shared = shared_of(arch);
  if (!shared || needs.threads <= 0) return std::nullopt;
  const int warps = (needs.threads + kWarpSize - 1) / kWarpSize;
  Occupancy best{kMaxBlocks, "blocks"};
  const auto limit = [&best](std::int64_t blocks, std::string_view by) {
    if (blocks < best.blocks) best = {static_cast<int>(blocks), by};
  };
  limit(kMaxWarps / warps, "warps");
  if (needs.registers > 0) {
    const int registers = round_up(needs.registers * kWarpSize, kRegisterUnit);
    limit(kRegistersPerPartition / registers * kPartitions / warps, "registers");
    // The launch is refused as if every partition took as many warps as the fullest.
    if (registers * round_up(warps, kPartitions) > kRegistersPerPartition * kPartitions)
      limit(0, "registers");
  }
  limit(*shared / round_up(needs.shared_bytes + kSharedReserved, kSharedUnit), "shared memory");
  return best;
}

}  // namespace kda::harness
