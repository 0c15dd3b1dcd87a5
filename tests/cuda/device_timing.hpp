#pragma once

#include "cuda/runtime.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kda::cuda {

/// One line of the table of times.
struct DecodeTime {
  std::string what;             ///< "decode N=32 HV=64 f32"
  double microseconds;          ///< median of single launches
  double gigabytes_per_second;  ///< of states in and out
};

/// Decoding in place (T = 1, K = V = 128) on the first GPU, with CUDA events. Throws
/// kDeviceUnavailable where there is no device code.
[[nodiscard]] std::vector<DecodeTime> time_decoding();

}  // namespace kda::cuda
