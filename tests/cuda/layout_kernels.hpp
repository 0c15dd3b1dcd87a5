#pragma once

#include "cuda/device/primitives.hpp"

#include <cstdint>

// One-warp kernels that hand a matrix instruction its operands, word for word, and return what it
// left in each lane. They run on the executor and, unchanged, on a GPU; layout_check.hpp judges.

namespace kda::cuda::layout {
inline namespace KDA_FLAVOUR {

using device::Global;

/// a [runs][32][4], b [runs][32][2] words; d [runs][32][4].
template <bool kBf16>
KDA_KERNEL(32)
mma_kernel(Global<const std::uint32_t> a, Global<const std::uint32_t> b, Global<float> d,
           int runs) {
  const int lane = static_cast<int>(device::lane_id());
  for (int run = 0; run < runs; ++run) {
    const int at = run * 32 + lane;
    std::uint32_t words[4];
    for (int i = 0; i < 4; ++i) words[i] = device::load(a, at * 4 + i);
    const std::uint32_t b0 = device::load(b, at * 2);
    const std::uint32_t b1 = device::load(b, at * 2 + 1);
    float sums[4] = {};
    if (kBf16) {
      device::mma_m16n8k16_bf16(sums, words, b0, b1);
    } else {
      device::mma_m16n8k16_f16(sums, words, b0, b1);
    }
    for (int i = 0; i < 4; ++i) device::store(d, at * 4 + i, sums[i]);
  }
}

/// rows [32][8] 16-bit elements, row r supplied by lane r; out [32][N] words.
template <unsigned N, bool kTransposed>
KDA_KERNEL(32)
ldmatrix_kernel(Global<const std::uint16_t> rows, Global<std::uint32_t> out) {
  KDA_SHARED(std::uint16_t, tile, 32 * 8);
  const int lane = static_cast<int>(device::lane_id());
  for (int i = 0; i < 8; ++i) {
    device::store(tile, lane * 8 + i, device::load(rows, lane * 8 + i));
  }
  device::sync_warp();
  std::uint32_t words[N];
  if (kTransposed) {
    device::ldmatrix_trans(words, tile + lane * 8);
  } else {
    device::ldmatrix(words, tile + lane * 8);
  }
  for (unsigned i = 0; i < N; ++i) {
    device::store(out, lane * static_cast<int>(N) + static_cast<int>(i), words[i]);
  }
}

/// in [runs][32] words; out [runs][32].
KDA_KERNEL(32)
movmatrix_kernel(Global<const std::uint32_t> in, Global<std::uint32_t> out, int runs) {
  const int lane = static_cast<int>(device::lane_id());
  for (int run = 0; run < runs; ++run) {
    const int at = run * 32 + lane;
    device::store(out, at, device::movmatrix_trans(device::load(in, at)));
  }
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::layout
