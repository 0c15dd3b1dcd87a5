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

struct PrefillTime {
  std::string what;       ///< "prefill 1 x 8192 H=64"
  double microseconds;    ///< both kernels, all segments; median
  double factors;         ///< of it, the first kernel
  double bytes_a_second;  ///< of every tensor once
};

/// Prefill of bf16 inputs with final states, on the first GPU: T = 8192, mixed lengths, 8 x 1024, B
/// = 1 and 2. Each kernel between two events, the L2 flushed before each call.
[[nodiscard]] std::vector<PrefillTime> time_prefill();

/// Decoding in place (T = 1, K = V = 128) on the first GPU, with CUDA events. Throws
/// kDeviceUnavailable where there is no device code.
[[nodiscard]] std::vector<DecodeTime> time_decoding();

}  // namespace kda::cuda
