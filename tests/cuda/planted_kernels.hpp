#pragma once

#include "cuda/device/primitives.hpp"
#include "reference/types/dtype.hpp"

#include <cstdint>

// Small kernels with faults planted by template argument. With kNone they are right.

namespace kda::cuda::planted {

enum class Fault {
  kNone,
  kNoSyncBefore,    ///< read before the writers are done
  kNoSyncAfter,     ///< overwritten before the readers are done
  kNoWait,          ///< cp.async.wait missing
  kWrongStage,      ///< prefetch into the stage in use
  kRowUnwritten,    ///< one row of shared memory never written
  kWriteBeyond,     ///< write one element past a shared array
  kDivergentSync,   ///< half of the threads in another barrier
  kEarlyExit,       ///< threads exit before a barrier
  kLaneSkipsMma,    ///< one lane leaves out an mma
  kSharedTooBig,    ///< takes more shared memory than the launch asks for
  kStaticBeyond,    ///< write past a static shared array
  kSingleBuffer,    ///< double buffering left out
  kSkipOneSync,     ///< one barrier of many left out
  kNoSyncWarp,      ///< __syncwarp missing
  kReadBeyond,      ///< global read past the input
  kWriteInput,      ///< global write to the input
  kCopyLeftBehind,  ///< exits with a cp.async not waited for
};

struct DeltaArgs {
  device::Global<const Bf16> q;
  device::Global<const Bf16> k;
  device::Global<const Bf16> v;
  device::Global<const float> g;
  device::Global<const float> beta;
  device::Global<float> state;
  device::Global<Bf16> o;
  int T;
  int H;
  float scale;
};

inline constexpr unsigned kGemmSharedBytes = 2 * 2 * 64 * 32 * 2;
inline constexpr unsigned kDeltaSharedBytes = 2 * 3 * 128 * 4;

inline namespace KDA_FLAVOUR {

using device::Global;
using device::Shared;

/// Place of 16-byte unit `c` of row r in a tile of 4 units a row, without bank conflicts.
KDA_DEVICE int swizzled(int r, int c) { return r * 32 + ((c ^ ((r >> 1) & 3)) << 3); }

/// C[M,N] = A[M,K] B[N,K]^T, bf16 in, f32 out: 64x64 tiles, 4 warps, two stages of cp.async.
template <Fault kFault>
KDA_KERNEL(128)
gemm_kernel(Global<const Bf16> a, Global<const Bf16> b, Global<float> c, int N, int K) {
  device::SharedCarver carver;
  const Shared<Bf16> a_smem = carver.take<Bf16>(2 * 64 * 32);
  const Shared<Bf16> b_smem = carver.take<Bf16>(2 * 64 * 32);
  if (kFault == Fault::kSharedTooBig) carver.take<Bf16>(64);
  const int t = static_cast<int>(device::thread_idx_x());
  const int warp = t / 32;
  const int lane = t % 32;
  const int m0 = static_cast<int>(device::block_idx_y()) * 64;
  const int n0 = static_cast<int>(device::block_idx_x()) * 64;
  const int wm = (warp & 1) * 32;
  const int wn = (warp >> 1) * 32;

  const auto prefetch = [&](int stage, int k0) {
    KDA_UNROLL
    for (int i = 0; i < 2; i++) {
      const int x = t + i * 128;
      const int r = x >> 2;
      const int u = x & 3;
      if (kFault == Fault::kRowUnwritten && stage == 1 && r == 17) continue;
      const int at = stage * 2048 + swizzled(r, u);
      device::copy_async<16>(a_smem + at, a + (static_cast<std::int64_t>(m0 + r) * K + k0 + u * 8));
      device::copy_async<16>(b_smem + at, b + (static_cast<std::int64_t>(n0 + r) * K + k0 + u * 8));
    }
    device::copy_commit();
  };

  float acc[2][4][4] = {};
  prefetch(0, 0);
  const int steps = K / 32;
  for (int step = 0; step < steps; step++) {
    const int stage = kFault == Fault::kWrongStage ? 0 : step & 1;
    if (step + 1 < steps) {
      prefetch(kFault == Fault::kWrongStage ? 0 : (step + 1) & 1, (step + 1) * 32);
      if (kFault != Fault::kNoWait) device::copy_wait<1>();
    } else if (kFault != Fault::kCopyLeftBehind) {
      device::copy_wait<0>();
    }
    if (kFault == Fault::kWriteBeyond && step == 0 && t == 77) {
      device::store(b_smem, 2 * 64 * 32, device::narrow<Bf16>(1.F));
    }
    if (kFault == Fault::kEarlyExit && step + 1 == steps && t >= 96) return;
    if (kFault == Fault::kDivergentSync && step == 1 && (t & 1) != 0) {
      device::sync_block();
    } else if (kFault != Fault::kNoSyncBefore) {
      device::sync_block();
    }
    if (kFault == Fault::kCopyLeftBehind && step + 1 == steps) return;
    KDA_UNROLL
    for (int ks = 0; ks < 2; ks++) {
      std::uint32_t af[2][4];
      std::uint32_t bf[2][4];
      KDA_UNROLL
      for (int i = 0; i < 2; i++) {
        const int ar = wm + i * 16 + (lane & 15);
        const int br = wn + i * 16 + (lane & 7) + ((lane >> 4) << 3);
        device::ldmatrix(af[i], a_smem + (stage * 2048 + swizzled(ar, ks * 2 + (lane >> 4))));
        device::ldmatrix(bf[i], b_smem + (stage * 2048 + swizzled(br, ks * 2 + ((lane >> 3) & 1))));
      }
      KDA_UNROLL
      for (int i = 0; i < 2; i++) {
        KDA_UNROLL
        for (int j = 0; j < 4; j++) {
          if (kFault == Fault::kLaneSkipsMma && lane == 5 && j == 3) continue;
          device::mma_m16n8k16_bf16(acc[i][j], af[i], bf[j >> 1][(j & 1) * 2],
                                    bf[j >> 1][(j & 1) * 2 + 1]);
        }
      }
    }
    if (kFault != Fault::kNoSyncAfter) device::sync_block();
  }
  KDA_UNROLL
  for (int i = 0; i < 2; i++) {
    KDA_UNROLL
    for (int j = 0; j < 4; j++) {
      KDA_UNROLL
      for (int e = 0; e < 4; e++) {
        const int row = m0 + wm + i * 16 + lane / 4 + (e >> 1) * 8;
        const int column = n0 + wn + j * 8 + lane % 4 * 2 + (e & 1);
        device::store(c, static_cast<std::int64_t>(row) * N + column, acc[i][j][e]);
      }
    }
  }
}

/// Gated delta rule with K = V = 128, 32 value columns a block, 4 threads a column.
template <Fault kFault>
KDA_KERNEL(128)
delta_kernel(DeltaArgs p) {
  device::SharedCarver carver;
  const Shared<float> buffers = carver.take<float>(2 * 3 * 128);
  KDA_SHARED(float, beta_smem, 2);
  const int t = static_cast<int>(device::thread_idx_x());
  const int h = static_cast<int>(device::block_idx_y());
  const int column = static_cast<int>(device::block_idx_x()) * 32 + t / 4;
  const int part = t & 3;
  float s[32];
  const auto row = [&](int i) { return (i >> 2) * 16 + part * 4 + (i & 3); };
  KDA_UNROLL
  for (int i = 0; i < 32; i++) s[i] = device::load(p.state, (h * 128 + row(i)) * 128 + column);
  for (int n = 0; n < p.T; n++) {
    const int stage = kFault == Fault::kSingleBuffer ? 0 : n & 1;
    const Shared<float> decay = buffers + stage * 384;
    const Shared<float> k = decay + 128;
    const Shared<float> q = decay + 256;
    const std::int64_t at = static_cast<std::int64_t>(n * p.H + h) * 128;
    device::store(decay, t, device::ex2_approx(1.44269504F * device::load(p.g, at + t)));
    device::store(k, t, device::widen(device::load(p.k, at + t)));
    device::store(q, t, device::widen(device::load(p.q, at + t)));
    if (t == 0) {
      device::store(beta_smem, kFault == Fault::kStaticBeyond ? 2 : n & 1,
                    device::load(p.beta, n * p.H + h));
    }
    const float v = device::widen(device::load(p.v, at + column));
    if (kFault != Fault::kNoSyncBefore && !(kFault == Fault::kSkipOneSync && n == 7)) {
      device::sync_block();
    }
    float d = 0.F;
    KDA_UNROLL
    for (int i = 0; i < 32; i++) {
      s[i] *= device::load(decay, row(i));
      d += device::load(k, row(i)) * s[i];
    }
    d += device::shuffle_xor(d, 1);
    d += device::shuffle_xor(d, 2);
    const float u = device::load(beta_smem, n & 1) * (v - d);
    float o = 0.F;
    KDA_UNROLL
    for (int i = 0; i < 32; i++) {
      s[i] += device::load(k, row(i)) * u;
      o += device::load(q, row(i)) * s[i];
    }
    o += device::shuffle_xor(o, 1);
    o += device::shuffle_xor(o, 2);
    if (part == 0) device::store(p.o, at + column, device::narrow<Bf16>(p.scale * o));
  }
  KDA_UNROLL
  for (int i = 0; i < 32; i++) device::store(p.state, (h * 128 + row(i)) * 128 + column, s[i]);
}

/// out += sum of x, positives += number of x > 0; 256 threads a block.
template <Fault kFault>
KDA_KERNEL(256)
block_sum_kernel(Global<const float> x, int n, Global<float> out, Global<int> positives) {
  KDA_SHARED(float, parts, 8);
  const int t = static_cast<int>(device::thread_idx_x());
  const int i = static_cast<int>(device::block_idx_x() * device::block_dim_x()) + t;
  const int limit = kFault == Fault::kReadBeyond ? n + 1 : n;
  float v = i < limit ? device::load(x, i) : 0.F;
  const std::uint32_t mask = device::warp_ballot(v > 0.F);
  for (int step = 16; step != 0; step /= 2) v += device::shuffle_xor(v, step);
  if (t % 32 == 0) {
    device::store(parts, t / 32, v);
    device::atomic_add(positives, 0, device::count_bits(mask));
  }
  if (kFault != Fault::kNoSyncBefore) device::sync_block();
  if (t == 0) {
    float sum = 0.F;
    for (int j = 0; j < 8; j++) sum += device::load(parts, j);
    device::atomic_add(out, 0, sum);
  }
}

/// Reverses 32 floats a warp through shared memory, n times, adding 1 each time.
template <Fault kFault>
KDA_KERNEL(128)
warp_reverse_kernel(Global<float> x, Global<float> y, int n) {
  KDA_SHARED(float, buffer, 128);
  const int t = static_cast<int>(device::thread_idx_x());
  float v = device::load(x, t);
  for (int i = 0; i < n; i++) {
    device::store(buffer, t, v + 1.F);
    if (kFault != Fault::kNoSyncWarp) device::sync_warp();
    v = device::load(buffer, (t & ~31) + 31 - (t & 31));
    if (kFault != Fault::kNoSyncWarp || i != 2) device::sync_warp();
  }
  if (kFault == Fault::kWriteInput && t == 3) {
    device::store(x, t, v);
  }
  device::store(y, t, v);
}

/// Warp 0 produces and warps 1..3 consume, through named barriers 1 (full) and 2 (empty).
template <Fault kFault>
KDA_KERNEL(128)
producer_consumer_kernel(Global<const float> x, Global<float> y, int steps) {
  KDA_SHARED(float, buffer, 32);
  const int t = static_cast<int>(device::thread_idx_x());
  const int block = static_cast<int>(device::block_idx_x());
  constexpr bool kFull = kFault != Fault::kNoSyncBefore;
  constexpr bool kEmpty = kFault != Fault::kNoSyncAfter;
  if (t < 32) {
    for (int i = 0; i < steps; i++) {
      if (i != 0 && kEmpty) device::sync_named(2, 128);
      device::store(buffer, t, device::load(x, i * 32 + t));
      if (kFull) device::arrive_named(1, 128);
    }
  } else {
    for (int i = 0; i < steps; i++) {
      if (kFull) device::sync_named(1, 128);
      const float v = device::load(buffer, 31 - t % 32);
      device::store(y, (block * steps + i) * 96 + t - 32, 2.F * v);
      if (i + 1 < steps && kEmpty) device::arrive_named(2, 128);
    }
  }
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::planted
