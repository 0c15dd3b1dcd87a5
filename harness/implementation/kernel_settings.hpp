#pragma once

#include "cuda/simt/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kda::harness {

/// Where CUDA kernels run: kAuto takes a GPU when there is one, else the CPU executor.
enum class DeviceChoice : std::uint8_t { kAuto, kCpu, kGpu };

/// When the executor completes asynchronous copies.
enum class CopyTiming : std::uint8_t { kLate, kEager, kBoth };

/// How CUDA kernels are run; the references have no use for it.
struct KernelSettings {
  DeviceChoice device = DeviceChoice::kAuto;
  cuda::simt::Order order = cuda::simt::Order::kInOrder;
  std::int64_t seeds = 1;  ///< schedules of a seeded order
  CopyTiming copies = CopyTiming::kLate;
  // For mutation tests, see simt::Options.
  const cuda::simt::Mutation* mutation = nullptr;
  cuda::simt::SiteLog* sites = nullptr;  ///< makes the executor run with one worker
};

/// Every way of running a kernel that the settings ask for; more than one must give equal bits.
[[nodiscard]] std::vector<cuda::simt::Options> executor_modes(const KernelSettings& settings);

/// "pct seed 3, copies late".
[[nodiscard]] std::string to_string(const cuda::simt::Options& mode);

}  // namespace kda::harness
