#pragma once

// Compiled once per instruction set, like the kernel it is compared with: see fma_rate.cpp.

namespace kda::bench {

/// Independent vectors: more than 2 units times latency 4, and few enough for 16 registers.
inline constexpr int kFmaChains = 12;

/// Runs `rounds` of kFmaChains vector multiply-adds that depend on nothing but themselves. Returns
/// a value that depends on all of them, so that none is dropped.
double fma_rounds_baseline(long long rounds);
double fma_rounds_avx2(long long rounds);
double fma_rounds_avx512(long long rounds);

}  // namespace kda::bench
