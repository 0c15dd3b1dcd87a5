#pragma once

#include <cstdint>

// Kernels that do one thing as fast as the device can.

namespace kda::bench {

/// to[i] = from[i], 16 bytes at a time.
__global__ void copy_kernel(const uint4* from, uint4* to, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    to[i] = from[i];
}

constexpr int kChains = 8;  ///< independent, so that latency does not limit

/// rounds * kChains multiply-adds a thread.
__global__ void fma_kernel(float* sink, int rounds) {
  float x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<float>(threadIdx.x + c);
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], 0.999F, 1e-3F);
  }
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += x[c];
  if (sum == -1.0F) *sink = sum;  // never, but the compiler cannot know
}

/// rounds * kChains mma.sync m16n8k16 bf16 a warp.
__global__ void mma_kernel(float* sink, int rounds) {
  float d[kChains][4] = {};
  const std::uint32_t a[4] = {threadIdx.x, threadIdx.x, threadIdx.x, threadIdx.x};
  const std::uint32_t b[2] = {threadIdx.x, threadIdx.x};
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += d[c][0] + d[c][1] + d[c][2] + d[c][3];
  if (sum == -1.0F) *sink = sum;
}

}  // namespace kda::bench
