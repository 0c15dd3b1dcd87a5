#pragma once

#include "cuda/device/primitives.hpp"

#include <cstdint>

// One-warp kernels that hand a matrix instruction its operands, word for word, and return what it
// left in each lane. They run on the executor and, unchanged, on a GPU; layout_check.hpp judges.

namespace kda::cuda::layout {

struct MmaParams {
  device::Global<const std::uint32_t> a;  ///< [runs][32][4] words
  device::Global<const std::uint32_t> b;  ///< [runs][32][2] words
  device::Global<float> d;                ///< [runs][32][4]
  int runs;
};

struct LdmatrixParams {
  device::Global<const std::uint16_t> rows;  ///< [32][8], row r supplied by lane r
  device::Global<std::uint32_t> out;         ///< [32][N] words
};

struct MovmatrixParams {
  device::Global<const std::uint32_t> in;  ///< [runs][32]
  device::Global<std::uint32_t> out;       ///< [runs][32]
  int runs;
};

inline namespace KDA_FLAVOUR {

template <bool kBf16>
KDA_KERNEL(32)
mma_kernel(MmaParams p) {
  const int lane = static_cast<int>(device::lane_id());
  for (int run = 0; run < p.runs; ++run) {
    const int at = run * 32 + lane;
    std::uint32_t words[4];
    for (int i = 0; i < 4; ++i) words[i] = device::load(p.a, at * 4 + i);
    const std::uint32_t b0 = device::load(p.b, at * 2);
    const std::uint32_t b1 = device::load(p.b, at * 2 + 1);
    float sums[4] = {};
    if (kBf16) {
      device::mma_m16n8k16_bf16(sums, words, b0, b1);
    } else {
      device::mma_m16n8k16_f16(sums, words, b0, b1);
    }
    for (int i = 0; i < 4; ++i) device::store(p.d, at * 4 + i, sums[i]);
  }
}

template <unsigned N, bool kTransposed>
KDA_KERNEL(32)
ldmatrix_kernel(LdmatrixParams p) {
  KDA_SHARED(std::uint16_t, tile, 32 * 8);
  const int lane = static_cast<int>(device::lane_id());
  for (int i = 0; i < 8; ++i) {
    device::store(tile, lane * 8 + i, device::load(p.rows, lane * 8 + i));
  }
  device::sync_warp();
  std::uint32_t words[N];
  if (kTransposed) {
    device::ldmatrix_trans(words, tile + lane * 8);
  } else {
    device::ldmatrix(words, tile + lane * 8);
  }
  for (unsigned i = 0; i < N; ++i) {
    device::store(p.out, lane * static_cast<int>(N) + static_cast<int>(i), words[i]);
  }
}

KDA_KERNEL(32)
movmatrix_kernel(MovmatrixParams p) {
  const int lane = static_cast<int>(device::lane_id());
  for (int run = 0; run < p.runs; ++run) {
    const int at = run * 32 + lane;
    device::store(p.out, at, device::movmatrix_trans(device::load(p.in, at)));
  }
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::layout
