#pragma once

#include "bench/checked.hpp"
#include "reference/fast.hpp"

namespace kda::bench {

/// Multiply-adds in f64 per second of processor time of one thread, the best of ten runs of some
/// milliseconds: other work on the machine only ever takes away.
[[nodiscard]] double fma_rate(reference::InstructionSet set);

/// Of all cores together, measured once a process: memory traffic of a copy far larger than the
/// caches, and f64 multiply-adds of the best instruction set.
[[nodiscard]] const Rates& machine_rates();

}  // namespace kda::bench
