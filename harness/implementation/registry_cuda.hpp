#pragma once

#include "harness/implementation/implementation.hpp"

#include <vector>

namespace kda::harness {

/// The CUDA kernels. On the CPU executor each case is run in every mode that the settings ask for,
/// and a difference of one bit between two modes is kExecutorFault: the kernel has a race.
[[nodiscard]] std::vector<Implementation> cuda_implementations();

}  // namespace kda::harness
