#pragma once

#include "cuda/device/pointers.hpp"

#include <cstdint>

// What the fit kernel is given. Plain data, the same for host, CPU kernel and GPU kernel.

namespace kda::cuda {

/// Threads of a block; each of its warps has a fit.
inline constexpr int kFitThreads = 128;

struct FitParams {
  device::Global<const std::int64_t> seq_lens;  ///< tokens
  device::Global<const double> latencies;       ///< ms
  device::Global<const std::int64_t> offsets;   ///< [profiles + 1], into both
  device::Global<double> coefficients;          ///< [fits, 3] a, b, c; NaN where there are none
  device::Global<std::int32_t> codes;           ///< [fits] 0 or an ErrorCode
  std::int64_t fits;
  std::int64_t resamples;  ///< of each profile; 0: fit i is of profile i itself
  std::uint64_t seed;
};

}  // namespace kda::cuda
