#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/kernels/gate_math.hpp"
#include "cuda/kernels/prefill_operands.hpp"
#include "cuda/kernels/prefill_workspace.hpp"
#include "cuda/prefill_params.hpp"

#include <cstdint>

// Second kernel of the prefill: the chain over chunks. A warp has 16 value columns of one head of
// one sequence, and the transposed state S^T[16 x 128] in f32 registers, as accumulators of mma:
//   P = Kg S;  R = v - p P;  U = T R;  o = p Qg S + Q U;  S' = exp(G_63) S + kap Kd^T U
// each of them transposed, so that the result of one is an operand of the next without leaving its
// lane. Warps share the blob in shared memory and nothing else: bits do not depend on how many
// warps a block has.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

/// Value columns of a block and stages of the copy pipeline.
template <PrefillPolicy kPolicy>
constexpr int kChainStages = kPolicy == PrefillPolicy::kSplit ? 1 : 2;

template <PrefillPolicy kPolicy, int kColumnsV>
struct ChainStage {
  static constexpr int kBytes =
      PrefillFormat<kPolicy>::kBlobBytes + kPrefillChunk * kColumnsV * 2;
};

/// What a block works on.
struct ChainPlace {
  RunEntry run;
  int hv;
  int v0;
};

KDA_DEVICE ChainPlace chain_place(const PrefillParams& p, std::int64_t block, int columns) {
  const std::int64_t row = block / p.v_blocks;
  const auto words = p.runs.as<const Vec<std::int32_t, 4>>();
  const std::int64_t r = row / p.HV;
  const auto first = device::load(words, 2 * r);
  const auto second = device::load(words, 2 * r + 1);
  ChainPlace place{};
  place.run.chunk = static_cast<std::int64_t>(static_cast<std::uint32_t>(first.x[0])) |
                    static_cast<std::int64_t>(first.x[1]) << 32;
  place.run.chunks = first.x[2];
  place.run.n = first.x[3];
  place.run.continues = second.x[0];
  place.run.continued = second.x[1];
  place.hv = static_cast<int>(row % p.HV);
  place.v0 = static_cast<int>(block % p.v_blocks) * columns;
  return place;
}

/// S^T of a warp: tile n has channels 8n .. 8n+7, lane l rows l/4 and l/4 + 8.
using StateTiles = FloatMatrix<16, 4>;

/// Where a lane's part of a state begins. `head` is [K,V] or [V,K].
struct StateLane {
  int channel;  ///< of element 0 in tile 0
  int column;   ///< value column of rows 0-7; + 8 for the others
};

KDA_DEVICE void load_state(const PrefillParams& p, Global<const float> head, StateLane lane,
                           StateTiles& s) {
  KDA_UNROLL
  for (int n = 0; n < 16; ++n) {
    KDA_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int channel = 8 * n + lane.channel;
      const int column = lane.column + 8 * half;
      if (p.state_v_first) {
        const int at = column * kPrefillDim + channel;
        const auto pair = device::load((head + at).template as<const Vec<float, 2>>(), 0);
        s[n][2 * half] = pair.x[0];
        s[n][2 * half + 1] = pair.x[1];
      } else {
        s[n][2 * half] = device::load(head, channel * kPrefillDim + column);
        s[n][2 * half + 1] = device::load(head, (channel + 1) * kPrefillDim + column);
      }
    }
  }
}

KDA_DEVICE void store_state(const PrefillParams& p, Global<float> head, StateLane lane,
                            const StateTiles& s) {
  KDA_UNROLL
  for (int n = 0; n < 16; ++n) {
    KDA_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int channel = 8 * n + lane.channel;
      const int column = lane.column + 8 * half;
      if (p.state_v_first) {
        const int at = column * kPrefillDim + channel;
        device::store((head + at).template as<Vec<float, 2>>(), 0,
                      {{s[n][2 * half], s[n][2 * half + 1]}});
      } else {
        device::store(head, channel * kPrefillDim + column, s[n][2 * half]);
        device::store(head, (channel + 1) * kPrefillDim + column, s[n][2 * half + 1]);
      }
    }
  }
}

/// 2^n that brings the largest of the values into [2^14, 2^15), and 2^-n; n within +-110.
struct PowerScale {
  float up;
  float down;
};

KDA_DEVICE PowerScale f16_scale(float largest) {
  int n = 14 + 127 - static_cast<int>(device::float_bits(largest) >> 23);
  n = n > 110 ? 110 : (n < -110 ? -110 : n);
  return {device::bits_float(static_cast<std::uint32_t>(127 + n) << 23),
          device::bits_float(static_cast<std::uint32_t>(127 - n) << 23)};
}

/// Scales of rows l/4 and l/4 + 8 over kTiles tiles.
template <int kTiles>
KDA_DEVICE void row_scales(const FloatMatrix<kTiles, 4>& x, PowerScale& upper, PowerScale& lower) {
  float top = 0.F;
  float bottom = 0.F;
  KDA_UNROLL
  for (int n = 0; n < kTiles; ++n) {
    KDA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float a = absolute(x[n][e]);
      const float b = absolute(x[n][2 + e]);
      top = a > top ? a : top;
      bottom = b > bottom ? b : bottom;
    }
  }
  KDA_UNROLL
  for (int step = 1; step < 4; step *= 2) {
    const float a = device::shuffle_xor(top, step);
    const float b = device::shuffle_xor(bottom, step);
    top = a > top ? a : top;
    bottom = b > bottom ? b : bottom;
  }
  upper = f16_scale(top);
  lower = f16_scale(bottom);
}

/// Copies a chunk's blob and its rows of v into a stage.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void copy_chunk(const PrefillParams& p, const ChainPlace& place, std::int64_t chunk,
                           Shared<std::byte> stage, int thread) {
  using Format = PrefillFormat<kPolicy>;
  constexpr int kThreads = kColumnsV * 2;
  constexpr int kUnitsPerRow = kColumnsV / 8;
  const Global<const std::byte> blob =
      p.blobs + (chunk * p.HV + place.hv) * std::int64_t{Format::kBlobBytes};
  KDA_UNROLL
  for (int unit = 0; unit < Format::kBlobBytes / 16; unit += kThreads) {
    const int mine = unit + thread;
    if (mine < Format::kBlobBytes / 16) {
      device::copy_async<16>(stage + mine * 16, blob + mine * 16);
    }
  }
  const ChunkEntry entry = load_chunk(p, chunk);
  const Shared<std::byte> v_stage = stage + Format::kBlobBytes;
  KDA_UNROLL
  for (int first = 0; first < kPrefillChunk * kUnitsPerRow; first += kThreads) {
    const int row = (first + thread) / kUnitsPerRow;
    const int unit = (first + thread) % kUnitsPerRow;
    // Rows past the end read nothing, from an address that is there all the same.
    const bool inside = row < entry.rows;
    const std::int64_t at = entry.b * p.v.b + (entry.begin + (inside ? row : 0)) * p.v.t +
                            place.hv * p.v.h + place.v0 + unit * 8;
    const int swizzled = unit ^ (row * kUnitsPerRow / 8 & (kUnitsPerRow - 1));
    device::copy_async<16>(v_stage + row * kColumnsV * 2 + swizzled * 16, p.v.data + at * 2,
                           inside ? 16 : 0);
  }
  device::copy_commit();
}

/// Two neighbouring B fragments of Kg or Qg: tokens row .. row+15, channels 16 step ..
template <int kParts>
KDA_DEVICE void load_rows(Shared<std::byte> tile, int row, int step, int lane,
                          FragmentPair<kParts>& b) {
  const int at = prefill_tile_byte(row + lane / 16 * 8 + lane % 8, 16 * step + lane / 8 % 2 * 8);
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    device::ldmatrix(
        b[part], (tile + (at + part * kPrefillChunk * kPrefillDim * 2)).template as<Bf16>());
  }
}

/// Of Kd: channels channel .. channel+15, tokens 16 step ..
template <int kParts>
KDA_DEVICE void load_columns(Shared<std::byte> tile, int channel, int step, int lane,
                             FragmentPair<kParts>& b) {
  const int at = prefill_tile_byte(16 * step + lane / 8 % 2 * 8 + lane % 8, channel + lane / 16 * 8);
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    device::ldmatrix_trans(
        b[part], (tile + (at + part * kPrefillChunk * kPrefillDim * 2)).template as<Bf16>());
  }
}

/// Of T or Q: rows 16 i .., columns 16 j ..
template <int kParts>
KDA_DEVICE void load_block(Shared<std::byte> triangle, int i, int j, int lane,
                           FragmentPair<kParts>& b) {
  const int at =
      prefill_triangle_byte(16 * i + lane / 16 * 8 + lane % 8, 16 * j + lane / 8 % 2 * 8);
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    device::ldmatrix(b[part],
                     (triangle + (at + part * 10 * 512)).template as<Bf16>());
  }
}

/// A stage's vectors, two neighbouring elements at a time.
KDA_DEVICE Vec<float, 2> load_pair(Shared<std::byte> vector, int i) {
  return device::load((vector + i * 4).as<const Vec<float, 2>>(), 0);
}

/// P = S^T Kg^T and O = S^T Qg^T, times 1 / down of rows and 1 / p of columns.
template <PrefillPolicy kPolicy>
KDA_DEVICE void read_state(Shared<std::byte> stage, const StateTiles& s, const PowerScale& upper,
                           const PowerScale& lower, int lane, FloatMatrix<8, 4>& k_read,
                           FloatMatrix<8, 4>& q_read) {
  using Format = PrefillFormat<kPolicy>;
  constexpr int kParts = Format::kWideParts;
  constexpr bool kF16 = Format::kWideF16;
  KDA_UNROLL
  for (int step = 0; step < 8; ++step) {
    Fragment<kParts> a;
    fragment_of<kF16, kParts>(s[2 * step], s[2 * step + 1], upper.up, lower.up, a);
    KDA_UNROLL
    for (int pair = 0; pair < 4; ++pair) {
      FragmentPair<kParts> b;
      load_rows<kParts>(stage + Format::kKg, 16 * pair, step, lane, b);
      multiply_parts<kF16, kParts, kParts>(k_read[2 * pair], a, b, 0);
      multiply_parts<kF16, kParts, kParts>(k_read[2 * pair + 1], a, b, 1);
      load_rows<kParts>(stage + Format::kQg, 16 * pair, step, lane, b);
      multiply_parts<kF16, kParts, kParts>(q_read[2 * pair], a, b, 0);
      multiply_parts<kF16, kParts, kParts>(q_read[2 * pair + 1], a, b, 1);
    }
  }
}

/// R = v_scale v - p P in place of P; p Q S in place of Q S.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void subtract_reads(Shared<std::byte> stage, int warp, int lane, const PowerScale& upper,
                               const PowerScale& lower, FloatMatrix<8, 4>& k_read,
                               FloatMatrix<8, 4>& q_read) {
  using Format = PrefillFormat<kPolicy>;
  constexpr int kUnitsPerRow = kColumnsV / 8;
  const Shared<std::byte> v_stage = stage + Format::kBlobBytes;
  KDA_UNROLL
  for (int pair = 0; pair < 4; ++pair) {
    const int row = 16 * pair + lane / 16 * 8 + lane % 8;
    const int unit = 2 * warp + lane / 8 % 2;
    const int swizzled = unit ^ (row * kUnitsPerRow / 8 & (kUnitsPerRow - 1));
    Words<4> v;
    device::ldmatrix_trans(v, (v_stage + row * kColumnsV * 2 + swizzled * 16).as<Bf16>());
    KDA_UNROLL
    for (int which = 0; which < 2; ++which) {
      const int n = 2 * pair + which;
      const int i = 8 * n + lane % 4 * 2;
      const Vec<float, 2> p = load_pair(stage + Format::kP, i);
      const Vec<float, 2> c = load_pair(stage + Format::kVScale, i);
      const std::uint32_t v_upper = v[2 * which];
      const std::uint32_t v_lower = v[2 * which + 1];
      k_read[n][0] = device::fma_rn(bf16_low(v_upper), c.x[0], -(k_read[n][0] * upper.down) * p.x[0]);
      k_read[n][1] = device::fma_rn(bf16_high(v_upper), c.x[1], -(k_read[n][1] * upper.down) * p.x[1]);
      k_read[n][2] = device::fma_rn(bf16_low(v_lower), c.x[0], -(k_read[n][2] * lower.down) * p.x[0]);
      k_read[n][3] = device::fma_rn(bf16_high(v_lower), c.x[1], -(k_read[n][3] * lower.down) * p.x[1]);
      q_read[n][0] = q_read[n][0] * upper.down * p.x[0];
      q_read[n][1] = q_read[n][1] * upper.down * p.x[1];
      q_read[n][2] = q_read[n][2] * lower.down * p.x[0];
      q_read[n][3] = q_read[n][3] * lower.down * p.x[1];
    }
  }
}

/// d += x M^T for a lower triangle M of 16x16 blocks (T or Q); x as fragments of 16 tokens.
template <int kX, int kM>
KDA_DEVICE void multiply_triangle(Shared<std::byte> triangle, int lane,
                                  const std::uint32_t (&x)[4][static_cast<unsigned>(kX)][4],
                                  FloatMatrix<8, 4>& d) {
  KDA_UNROLL
  for (int i = 0; i < 4; ++i) {
    KDA_UNROLL
    for (int j = 0; j <= i; ++j) {
      FragmentPair<kM> b;
      load_block<kM>(triangle, i, j, lane, b);
      multiply_parts<false, kX, kM>(d[2 * i], x[j], b, 0);
      multiply_parts<false, kX, kM>(d[2 * i + 1], x[j], b, 1);
    }
  }
}

/// S' = exp(G_63) S + kap Kd^T U. The matrix unit adds into a fresh accumulator: what it truncates
/// must not gather in the state.
template <PrefillPolicy kPolicy>
KDA_DEVICE void update_state(
    Shared<std::byte> stage, int lane,
    const std::uint32_t (&u)[4][static_cast<unsigned>(PrefillFormat<kPolicy>::kWideParts)][4],
    float upper, float lower, StateTiles& s) {
  using Format = PrefillFormat<kPolicy>;
  constexpr int kParts = Format::kWideParts;
  KDA_UNROLL
  for (int pair = 0; pair < 8; ++pair) {
    FloatMatrix<2, 4> sum = {};
    KDA_UNROLL
    for (int step = 0; step < 4; ++step) {
      FragmentPair<kParts> b;
      load_columns<kParts>(stage + Format::kKd, 16 * pair, step, lane, b);
      multiply_parts<Format::kWideF16, kParts, kParts>(sum[0], u[step], b, 0);
      multiply_parts<Format::kWideF16, kParts, kParts>(sum[1], u[step], b, 1);
    }
    KDA_UNROLL
    for (int which = 0; which < 2; ++which) {
      const int n = 2 * pair + which;
      const int channel = 8 * n + lane % 4 * 2;
      const Vec<float, 2> decay = load_pair(stage + Format::kDecay, channel);
      const Vec<float, 2> kap = load_pair(stage + Format::kKap, channel);
      KDA_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float x = sum[which][e] * (e < 2 ? upper : lower) * kap.x[e % 2];
        s[n][e] = decayed_plus(decay.x[e % 2], s[n][e], x);
      }
    }
  }
}

/// o of the chunk, times o_scale, rounded once. Tiles are transposed, so that a row of 16 columns
/// is one sector.
template <PrefillPolicy kPolicy>
KDA_DEVICE void store_output(const PrefillParams& p, const ChainPlace& place, std::int64_t chunk,
                             Shared<std::byte> stage, int warp, int lane,
                             const FloatMatrix<8, 4>& o) {
  const ChunkEntry entry = load_chunk(p, chunk);
  const std::int64_t base = entry.b * p.o.b + entry.begin * p.o.t + place.hv * p.o.h + place.v0 +
                            16 * warp + lane % 4 * 2;
  KDA_UNROLL
  for (int n = 0; n < 8; ++n) {
    const Vec<float, 2> c =
        load_pair(stage + PrefillFormat<kPolicy>::kOScale, 8 * n + lane % 4 * 2);
    const std::uint32_t upper =
        device::movmatrix_trans(device::pack_bf16(o[n][0] * c.x[0], o[n][1] * c.x[1]));
    const std::uint32_t lower =
        device::movmatrix_trans(device::pack_bf16(o[n][2] * c.x[0], o[n][3] * c.x[1]));
    const int row = 8 * n + lane / 4;
    if (row < entry.rows) {
      const Global<std::byte> at = p.o.data + (base + row * p.o.t) * 2;
      device::store(at.as<std::uint32_t>(), 0, upper);
      device::store(at.as<std::uint32_t>(), 4, lower);
    }
  }
}

/// U for a debug run, without the factor that v_scale brought in.
template <PrefillPolicy kPolicy>
KDA_DEVICE void store_stage_u(const PrefillParams& p, const ChainPlace& place, std::int64_t chunk,
                              Shared<std::byte> stage, int warp, int lane,
                              const FloatMatrix<8, 4>& u) {
  const std::int64_t head = (p.first_chunk + chunk) * p.HV + place.hv;
  const Global<float> to = p.stages.U + head * (kPrefillChunk * kPrefillDim);
  KDA_UNROLL
  for (int n = 0; n < 8; ++n) {
    const int row = 8 * n + lane % 4 * 2;
    const Vec<float, 2> c = load_pair(stage + PrefillFormat<kPolicy>::kVScale, row);
    KDA_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int column = place.v0 + 16 * warp + lane / 4 + e / 2 * 8;
      device::store(to, (row + e % 2) * kPrefillDim + column, u[n][e] * c.x[e % 2]);
    }
  }
}

/// One chunk: outputs and the next state.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void chain_step(const PrefillParams& p, const ChainPlace& place, std::int64_t chunk,
                           Shared<std::byte> stage, int warp, int lane, StateTiles& s) {
  using Format = PrefillFormat<kPolicy>;
  constexpr int kSmall = Format::kSmallParts;
  PowerScale upper{1.F, 1.F};
  PowerScale lower{1.F, 1.F};
  if constexpr (Format::kWideF16) row_scales<16>(s, upper, lower);
  FloatMatrix<8, 4> r = {};
  FloatMatrix<8, 4> o = {};
  read_state<kPolicy>(stage, s, upper, lower, lane, r, o);
  subtract_reads<kPolicy, kColumnsV>(stage, warp, lane, upper, lower, r, o);

  FloatMatrix<8, 4> u = {};
  {
    Fragment<kSmall> r_parts[4];
    KDA_UNROLL
    for (int i = 0; i < 4; ++i) {
      fragment_of<false, kSmall>(r[2 * i], r[2 * i + 1], 1.F, 1.F, r_parts[i]);
    }
    multiply_triangle<kSmall, Format::kTParts>(stage + Format::kT, lane, r_parts, u);
  }
  if (p.stages.U) store_stage_u<kPolicy>(p, place, chunk, stage, warp, lane, u);

  Fragment<kSmall> u_parts[4];
  KDA_UNROLL
  for (int i = 0; i < 4; ++i) {
    fragment_of<false, kSmall>(u[2 * i], u[2 * i + 1], 1.F, 1.F, u_parts[i]);
  }
  if constexpr (Format::kWideF16) {
    Fragment<1> u_wide[4];
    row_scales<8>(u, upper, lower);
    KDA_UNROLL
    for (int i = 0; i < 4; ++i) {
      fragment_of<true, 1>(u[2 * i], u[2 * i + 1], upper.up, lower.up, u_wide[i]);
    }
    update_state<kPolicy>(stage, lane, u_wide, upper.down, lower.down, s);
  } else {
    update_state<kPolicy>(stage, lane, u_parts, 1.F, 1.F, s);
  }
  multiply_triangle<kSmall, kSmall>(stage + Format::kQ, lane, u_parts, o);
  store_output<kPolicy>(p, place, chunk, stage, warp, lane, o);
}

/// kColumnsV value columns a block, 16 a warp.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_KERNEL(kColumnsV * 2) prefill_chain_kernel(PrefillParams p) {
  constexpr int kStages = kChainStages<kPolicy>;
  constexpr int kStageBytes = ChainStage<kPolicy, kColumnsV>::kBytes;
  device::SharedCarver carver;
  const Shared<std::byte> stages = carver.template take<std::byte>(kStages * kStageBytes);

  const auto row = static_cast<std::int64_t>(device::block_idx_y());
  const std::int64_t block = row * device::grid_dim_x() + device::block_idx_x();
  if (block >= p.num_blocks) return;
  const int thread = static_cast<int>(device::thread_idx_x());
  const int warp = thread / 32;
  const int lane = static_cast<int>(device::lane_id());
  const ChainPlace place = chain_place(p, block, kColumnsV);
  const StateLane state_lane{lane % 4 * 2, place.v0 + 16 * warp + lane / 4};
  const std::int64_t state_size = std::int64_t{kPrefillDim} * kPrefillDim;

  StateTiles s = {};
  if (place.run.continues != 0) {
    load_state(p, p.carry_in + place.hv * state_size, state_lane, s);
  } else if (p.initial_state) {
    const std::int64_t slot = static_cast<std::int64_t>(place.run.n) * p.HV + place.hv;
    load_state(p, p.initial_state + slot * state_size, state_lane, s);
  }
  const std::int64_t first = place.run.chunk - p.first_chunk;
  const int chunks = place.run.chunks;
  if constexpr (kStages == 2) {
    copy_chunk<kPolicy, kColumnsV>(p, place, first, stages, thread);
  }
  KDA_NO_UNROLL
  for (int i = 0; i < chunks; ++i) {
    const std::int64_t chunk = first + i;
    if constexpr (kStages == 2) {
      device::copy_wait<0>();
      // Everyone's copies of this chunk are there, and nobody reads the other stage any more.
      device::sync_block();
      if (i + 1 < chunks) {
        copy_chunk<kPolicy, kColumnsV>(p, place, chunk + 1, stages + (i + 1) % 2 * kStageBytes,
                                       thread);
      }
    } else {
      if (i > 0) device::sync_block();
      copy_chunk<kPolicy, kColumnsV>(p, place, chunk, stages, thread);
      device::copy_wait<0>();
      device::sync_block();
    }
    if (p.h) {
      const std::int64_t slot = (place.run.chunk + i) * p.HV + place.hv;
      store_state(p, p.h + slot * state_size, state_lane, s);
    }
    chain_step<kPolicy, kColumnsV>(p, place, chunk, stages + i % kStages * kStageBytes, warp, lane,
                                   s);
  }
  if (place.run.continued != 0) {
    store_state(p, p.carry_out + place.hv * state_size, state_lane, s);
  } else if (p.final_state) {
    const std::int64_t slot = static_cast<std::int64_t>(place.run.n) * p.HV + place.hv;
    store_state(p, p.final_state + slot * state_size, state_lane, s);
  }
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
