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

/// A chunk in shared memory, in two parts with buffers of their own: what U takes, with the rows of
/// v, and what o and the state take then. Copies of the one run beside the work on the other. Rows
/// of Kg, Qg and Kd are padded.
template <PrefillPolicy kPolicy>
struct StageFormat {
  using Blob = PrefillFormat<kPolicy>;
  static constexpr int kParts = Blob::kWideParts;
  static constexpr int kTileBytes = kPrefillChunk * kPaddedRow;
  // The early part; from T on as in the blob.
  static constexpr int kKg = 0;
  static constexpr int kQg = kParts * kTileBytes;
  static constexpr int kT = 2 * kParts * kTileBytes;
  static constexpr int kP = Blob::kP - Blob::kT + kT;
  static constexpr int kVScale = Blob::kVScale - Blob::kT + kT;
  static constexpr int kV = Blob::kKd - Blob::kT + kT;
  KDA_HOST_DEVICE static constexpr int early_bytes(int v_columns) {
    return kV + kPrefillChunk * v_columns * 2;
  }
  // The late part; from Q on as in the blob.
  static constexpr int kKd = 0;
  static constexpr int kQ = Blob::kSmallParts * kTileBytes;
  static constexpr int kDecay = Blob::kDecay - Blob::kQ + kQ;
  static constexpr int kKap = Blob::kKap - Blob::kQ + kQ;
  static constexpr int kOScale = Blob::kOScale - Blob::kQ + kQ;
  static constexpr int kLateBytes = Blob::kBlobBytes - Blob::kQ + kQ;
  // Where operands have two parts, registers do not hold all accumulators: the first tiles of Qg S
  // wait in shared memory behind the rest, [4 tiles][threads] f32.
  static constexpr int kParkedTiles = kParts == 2 ? 8 : (Blob::kSmallParts == 2 ? 4 : 0);
  KDA_HOST_DEVICE static constexpr int parked_bytes(int v_columns) {
    return kParkedTiles * 4 * 2 * v_columns * 4;
  }
  /// Early parts at once: the next chunk's is copied while this one's is in use, if there is room.
  static constexpr int kEarly = kParts == 2 ? 1 : 2;
  KDA_HOST_DEVICE static constexpr int shared_bytes(int v_columns) {
    return kEarly * early_bytes(v_columns) + kLateBytes + parked_bytes(v_columns);
  }
};

/// Where a block has them.
struct ChunkMemory {
  Shared<std::byte> early;
  Shared<std::byte> late;
  Shared<float> parked;
};

/// What a block works on.
struct ChainPlace {
  int run;  ///< of the segment
  int hv;
  int v0;
};

KDA_DEVICE ChainPlace chain_place(const PrefillParams& p, std::int64_t block, int columns) {
  const std::int64_t row = block / p.v_blocks;
  return {static_cast<int>(row / p.HV), static_cast<int>(row % p.HV),
          static_cast<int>(block % p.v_blocks) * columns};
}

KDA_DEVICE RunEntry load_run(const PrefillParams& p, int run) {
  const auto words = p.runs.as<const Vec<std::int32_t, 4>>();
  const auto first = device::load(words, 2LL * run);
  const auto second = device::load(words, 2LL * run + 1);
  RunEntry entry{};
  entry.chunk = join_words(first.x[0], first.x[1]);
  entry.chunks = first.x[2];
  entry.n = first.x[3];
  entry.continues = second.x[0];
  entry.continued = second.x[1];
  return entry;
}

/// S^T of a warp: tile n has channels 8n .. 8n+7, lane l rows l/4 and l/4 + 8.
using StateTiles = FloatMatrix<16, 4>;

/// Element (tile 0, row 0-7, first channel) of a lane in a state [V,K] or [K,V]; others lie at
/// constant distances.
KDA_DEVICE int state_offset(bool v_first, int v0, int lane) {
  const int column = v0 + lane / 4;
  const int channel = lane % 4 * 2;
  return v_first ? column * kPrefillDim + channel : channel * kPrefillDim + column;
}

/// `lane_state` is at state_offset.
KDA_DEVICE void load_state(bool v_first, Global<const float> lane_state, StateTiles& s) {
  if (v_first) {
    const auto pairs = lane_state.as<const Vec<float, 2>>();
    KDA_UNROLL
    for (int n = 0; n < 16; ++n) {
      KDA_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto pair = device::load(pairs, half * 4 * kPrefillDim + 4 * n);
        s[n][2 * half] = pair.x[0];
        s[n][2 * half + 1] = pair.x[1];
      }
    }
    return;
  }
  KDA_UNROLL
  for (int n = 0; n < 16; ++n) {
    KDA_UNROLL
    for (int e = 0; e < 4; ++e) {
      s[n][e] = device::load(lane_state, (8 * n + e % 2) * kPrefillDim + e / 2 * 8);
    }
  }
}

KDA_DEVICE void store_state(bool v_first, Global<float> lane_state, const StateTiles& s) {
  if (v_first) {
    const auto pairs = lane_state.as<Vec<float, 2>>();
    KDA_UNROLL
    for (int n = 0; n < 16; ++n) {
      KDA_UNROLL
      for (int half = 0; half < 2; ++half) {
        device::store(pairs, half * 4 * kPrefillDim + 4 * n,
                      {{s[n][2 * half], s[n][2 * half + 1]}});
      }
    }
    return;
  }
  KDA_UNROLL
  for (int n = 0; n < 16; ++n) {
    KDA_UNROLL
    for (int e = 0; e < 4; ++e) {
      device::store(lane_state, (8 * n + e % 2) * kPrefillDim + e / 2 * 8, s[n][e]);
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

/// What of the addresses of ldmatrix depends on the lane; the rest are constants. Of the four 8x8
/// matrices, m = 0 .. 3, lane 8m + r supplies row r.
struct LaneOffsets {
  int tile;        ///< in Kg and Qg, m: rows 8 (m/2), channels 8 (m%2)
  int transposed;  ///< in Kd, m: rows 8 (m%2), channels 8 (m/2)
  int triangle;    ///< in T and Q, as `tile`
  int v;           ///< in v, as `tile`

  template <int kColumnsV>
  KDA_DEVICE static LaneOffsets of(int warp, int lane) {
    constexpr int kUnits = kColumnsV / 8;
    const int odd = lane / 8 % 2;
    const int late = lane / 16;
    const int row = 8 * late + lane % 8;
    return {padded_byte(row, 8 * odd), padded_byte(8 * odd + lane % 8, 8 * late),
            prefill_triangle_byte(row, 8 * odd),
            row * kColumnsV * 2 + v_unit<kUnits>(row, 2 * warp + odd) * 16};
  }
  /// Place of a 16-byte piece in a row of v of kUnits pieces.
  template <int kUnits>
  KDA_DEVICE static int v_unit(int row, int unit) {
    return unit ^ (row * kUnits / 8 & (kUnits - 1));
  }
};

/// Copies a part of a blob: `rows` of 256 bytes, which are padded, and `rest` bytes behind them.
template <int kThreads, int kRows, int kRest>
KDA_DEVICE void copy_part(Global<const std::byte> blob, Shared<std::byte> to, int thread) {
  constexpr int kUnitsPerTileRow = kPrefillDim / 8;
  constexpr int kRowsAtOnce = kThreads / kUnitsPerTileRow;
  // Loops are not unrolled: the addresses would be kept in registers from chunk to chunk.
  const auto rows_from = blob + thread * 16;
  const auto rows_to =
      to + (thread / kUnitsPerTileRow * kPaddedRow + thread % kUnitsPerTileRow * 16);
  KDA_NO_UNROLL
  for (int row = 0; row < kRows; row += kRowsAtOnce) {
    device::copy_async<16>(rows_to + row * kPaddedRow, rows_from + row * (kPrefillDim * 2));
  }
  KDA_NO_UNROLL
  for (int at = thread * 16; at < kRest; at += kThreads * 16) {
    device::copy_async<16>(to + kRows * kPaddedRow + at, blob + kRows * (kPrefillDim * 2) + at);
  }
}

template <PrefillPolicy kPolicy>
KDA_DEVICE Global<const std::byte> blob_of(const PrefillParams& p, const ChainPlace& place,
                                           int chunk) {
  return p.blobs + (std::int64_t{chunk} * p.HV + place.hv) * PrefillFormat<kPolicy>::kBlobBytes;
}

/// What U takes of a chunk, with its rows of v.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void copy_early(const PrefillParams& p, const ChainPlace& place, int chunk,
                           Shared<std::byte> early, int thread) {
  using Blob = PrefillFormat<kPolicy>;
  using Stage = StageFormat<kPolicy>;
  constexpr int kThreads = kColumnsV * 2;
  copy_part<kThreads, 2 * Blob::kWideParts * kPrefillChunk, Blob::kKd - Blob::kT>(
      blob_of<kPolicy>(p, place, chunk), early, thread);
  const ChunkEntry entry = load_chunk(p, chunk);
  constexpr int kUnitsPerRow = kColumnsV / 8;
  KDA_NO_UNROLL
  for (int first = 0; first < kPrefillChunk * kUnitsPerRow; first += kThreads) {
    const int row = (first + thread) / kUnitsPerRow;
    const int unit = (first + thread) % kUnitsPerRow;
    // Rows past the end read nothing, from an address that is there all the same.
    const bool inside = row < entry.rows;
    const std::int64_t at = entry.b * p.v.b + (entry.begin + (inside ? row : 0)) * p.v.t +
                            place.hv * p.v.h + place.v0 + unit * 8;
    const int to = row * kColumnsV * 2 + LaneOffsets::v_unit<kUnitsPerRow>(row, unit) * 16;
    device::copy_async<16>(early + Stage::kV + to, p.v.data + at * 2, inside ? 16 : 0);
  }
}

/// What o and the state take once U is there.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void copy_late(const PrefillParams& p, const ChainPlace& place, int chunk,
                          Shared<std::byte> late, int thread) {
  using Blob = PrefillFormat<kPolicy>;
  copy_part<kColumnsV * 2, Blob::kSmallParts * kPrefillChunk, Blob::kBlobBytes - Blob::kQ>(
      blob_of<kPolicy>(p, place, chunk) + Blob::kKd, late, thread);
}

/// Two neighbouring B fragments of Kg or Qg: tokens row .. row+15, channels 16 step ..
template <int kParts>
KDA_DEVICE void load_rows(Shared<std::byte> tile, int row, int step, const LaneOffsets& offsets,
                          FragmentPair<kParts>& b) {
  const auto at = tile + (offsets.tile + row * kPaddedRow + 32 * step);
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int more = part * kPrefillChunk * kPaddedRow;
    device::ldmatrix(b[part], (at + more).template as<Bf16>());
  }
}

/// Of Kd: channels channel .. channel+15, tokens 16 step ..
template <int kParts>
KDA_DEVICE void load_columns(Shared<std::byte> tile, int channel, int step,
                             const LaneOffsets& offsets, FragmentPair<kParts>& b) {
  const auto at = tile + (offsets.transposed + step * 16 * kPaddedRow + 2 * channel);
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int more = part * kPrefillChunk * kPaddedRow;
    device::ldmatrix_trans(b[part], (at + more).template as<Bf16>());
  }
}

/// Of T or Q: rows 16 i .., columns 16 j ..
template <int kParts>
KDA_DEVICE void load_block(Shared<std::byte> triangle, int i, int j, const LaneOffsets& offsets,
                           FragmentPair<kParts>& b) {
  const auto at = triangle + offsets.triangle;
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int more = (i * (i + 1) / 2 + j) * 512 + part * 10 * 512;
    device::ldmatrix(b[part], (at + more).template as<Bf16>());
  }
}

/// A stage's vectors, two neighbouring elements at a time.
KDA_DEVICE Vec<float, 2> load_pair(Shared<std::byte> vector, int i) {
  return device::load((vector + i * 4).as<const Vec<float, 2>>(), 0);
}

/// sum += S^T X^T for X = Kg and Qg, but for the powers of two of rows and columns.
template <PrefillPolicy kPolicy>
KDA_DEVICE void read_state(Shared<std::byte> stage, const StateTiles& s, const PowerScale& upper,
                           const PowerScale& lower, const LaneOffsets& offsets,
                           FloatMatrix<8, 4>& k_read, FloatMatrix<8, 4>& q_read) {
  using Format = PrefillFormat<kPolicy>;
  using Stage = StageFormat<kPolicy>;
  constexpr int kParts = Format::kWideParts;
  constexpr bool kF16 = Format::kWideF16;
  KDA_UNROLL
  for (int step = 0; step < 8; ++step) {
    Fragment<kParts> a;
    fragment_of<kF16, kParts>(s[2 * step], s[2 * step + 1], upper.up, lower.up, a);
    KDA_UNROLL
    for (int pair = 0; pair < 4; ++pair) {
      FragmentPair<kParts> b;
      load_rows<kParts>(stage + Stage::kKg, 16 * pair, step, offsets, b);
      multiply_parts<kF16, kParts, kParts>(k_read[2 * pair], a, b, 0);
      multiply_parts<kF16, kParts, kParts>(k_read[2 * pair + 1], a, b, 1);
      load_rows<kParts>(stage + Stage::kQg, 16 * pair, step, offsets, b);
      multiply_parts<kF16, kParts, kParts>(q_read[2 * pair], a, b, 0);
      multiply_parts<kF16, kParts, kParts>(q_read[2 * pair + 1], a, b, 1);
    }
  }
}

/// R = v_scale v - p P in place of P.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void subtract_reads(Shared<std::byte> stage, int lane, const PowerScale& upper,
                               const PowerScale& lower, const LaneOffsets& offsets,
                               FloatMatrix<8, 4>& k_read) {
  using Stage = StageFormat<kPolicy>;
  const Shared<std::byte> v_lane = stage + Stage::kV + offsets.v;
  KDA_UNROLL
  for (int pair = 0; pair < 4; ++pair) {
    Words<4> v;
    device::ldmatrix_trans(v, (v_lane + pair * 16 * kColumnsV * 2).as<Bf16>());
    KDA_UNROLL
    for (int which = 0; which < 2; ++which) {
      const int n = 2 * pair + which;
      const int i = 8 * n + lane % 4 * 2;
      const Vec<float, 2> power = load_pair(stage + Stage::kP, i);
      const Vec<float, 2> c = load_pair(stage + Stage::kVScale, i);
      KDA_UNROLL
      for (int e = 0; e < 4; ++e) {
        const std::uint32_t pair_of_v = v[2 * which + e / 2];
        const float x = e % 2 == 0 ? bf16_low(pair_of_v) : bf16_high(pair_of_v);
        const float read = k_read[n][e] * (e < 2 ? upper.down : lower.down) * power.x[e % 2];
        k_read[n][e] = device::fma_rn(x, c.x[e % 2], -read);
      }
    }
  }
}

/// p Qg S in place of Qg S.
template <PrefillPolicy kPolicy>
KDA_DEVICE void scale_reads(Shared<std::byte> stage, int lane, const PowerScale& upper,
                            const PowerScale& lower, FloatMatrix<8, 4>& q_read) {
  KDA_UNROLL
  for (int n = 0; n < 8; ++n) {
    const Vec<float, 2> power = load_pair(stage + StageFormat<kPolicy>::kP, 8 * n + lane % 4 * 2);
    KDA_UNROLL
    for (int e = 0; e < 4; ++e) {
      q_read[n][e] = q_read[n][e] * (e < 2 ? upper.down : lower.down) * power.x[e % 2];
    }
  }
}

/// d += x M^T for a lower triangle M of 16x16 blocks (T or Q); x as fragments of 16 tokens.
template <int kX, int kM>
KDA_DEVICE void multiply_triangle(Shared<std::byte> triangle, const LaneOffsets& offsets,
                                  const std::uint32_t (&x)[4][static_cast<unsigned>(kX)][4],
                                  FloatMatrix<8, 4>& d) {
  // From the last rows on: what only they take of x is done with then, and its registers free.
  KDA_UNROLL
  for (int i = 3; i >= 0; --i) {
    KDA_UNROLL
    for (int j = 0; j <= i; ++j) {
      FragmentPair<kM> b;
      load_block<kM>(triangle, i, j, offsets, b);
      multiply_parts<false, kX, kM>(d[2 * i], x[j], b, 0);
      multiply_parts<false, kX, kM>(d[2 * i + 1], x[j], b, 1);
    }
  }
}

/// S' = exp(G_63) S + kap Kd^T U. The matrix unit adds into a fresh accumulator: what it truncates
/// must not gather in the state.
template <PrefillPolicy kPolicy>
KDA_DEVICE void update_state(
    Shared<std::byte> late, int lane, const LaneOffsets& offsets,
    const std::uint32_t (&u)[4][static_cast<unsigned>(PrefillFormat<kPolicy>::kSmallParts)][4],
    StateTiles& s) {
  using Stage = StageFormat<kPolicy>;
  constexpr int kParts = PrefillFormat<kPolicy>::kSmallParts;
  KDA_UNROLL
  for (int pair = 0; pair < 8; ++pair) {
    FloatMatrix<2, 4> sum = {};
    KDA_UNROLL
    for (int step = 0; step < 4; ++step) {
      FragmentPair<kParts> b;
      load_columns<kParts>(late + Stage::kKd, 16 * pair, step, offsets, b);
      multiply_parts<false, kParts, kParts>(sum[0], u[step], b, 0);
      multiply_parts<false, kParts, kParts>(sum[1], u[step], b, 1);
    }
    KDA_UNROLL
    for (int which = 0; which < 2; ++which) {
      const int n = 2 * pair + which;
      const int channel = 8 * n + lane % 4 * 2;
      const Vec<float, 2> decay = load_pair(late + Stage::kDecay, channel);
      const Vec<float, 2> kap = load_pair(late + Stage::kKap, channel);
      KDA_UNROLL
      for (int e = 0; e < 4; ++e) {
        s[n][e] = decayed_plus(decay.x[e % 2], s[n][e], sum[which][e] * kap.x[e % 2]);
      }
    }
  }
}

/// o of the chunk, times o_scale, rounded once. Tiles are transposed, so that a row of 16 columns
/// is one sector.
template <PrefillPolicy kPolicy>
KDA_DEVICE void store_output(const PrefillParams& p, const ChainPlace& place, int chunk,
                             Shared<std::byte> stage, int warp, int lane,
                             const FloatMatrix<8, 4>& o) {
  const ChunkEntry entry = load_chunk(p, chunk);
  const std::int64_t base = lane / 4 * p.o.t + entry.b * p.o.b + entry.begin * p.o.t +
                            place.hv * p.o.h + place.v0 + 16 * warp + lane % 4 * 2;
  Global<std::byte> at = p.o.data + base * 2;
  KDA_UNROLL
  for (int n = 0; n < 8; ++n) {
    const Vec<float, 2> c = load_pair(stage + StageFormat<kPolicy>::kOScale, 8 * n + lane % 4 * 2);
    const std::uint32_t upper =
        device::movmatrix_trans(device::pack_bf16(o[n][0] * c.x[0], o[n][1] * c.x[1]));
    const std::uint32_t lower =
        device::movmatrix_trans(device::pack_bf16(o[n][2] * c.x[0], o[n][3] * c.x[1]));
    const int row = 8 * n + lane / 4;
    if (row < entry.rows) {
      device::store(at.as<std::uint32_t>(), 0, upper);
      device::store(at.as<std::uint32_t>(), 4, lower);
    }
    at = at + 16 * p.o.t;
  }
}

/// U for a debug run, without the factor that v_scale brought in.
template <PrefillPolicy kPolicy>
KDA_DEVICE void store_stage_u(const PrefillParams& p, const ChainPlace& place, int chunk,
                              Shared<std::byte> stage, int warp, int lane,
                              const FloatMatrix<8, 4>& u) {
  const std::int64_t head = (p.first_chunk + chunk) * p.HV + place.hv;
  const int in_head = lane % 4 * 2 * kPrefillDim + place.v0 + 16 * warp + lane / 4;
  const Global<float> to = p.stages.U + (head * (kPrefillChunk * kPrefillDim) + in_head);
  KDA_UNROLL
  for (int n = 0; n < 8; ++n) {
    const Vec<float, 2> c = load_pair(stage + StageFormat<kPolicy>::kVScale, 8 * n + lane % 4 * 2);
    KDA_UNROLL
    for (int e = 0; e < 4; ++e) {
      device::store(to, (8 * n + e % 2) * kPrefillDim + e / 2 * 8, u[n][e] * c.x[e % 2]);
    }
  }
}

/// Puts the first kTiles accumulators aside.
template <int kTiles, int kThreads>
KDA_DEVICE void park(Shared<float> place, int thread, const FloatMatrix<8, 4>& x) {
  KDA_UNROLL
  for (int i = 0; i < 4 * kTiles; ++i) device::store(place, i * kThreads + thread, x[i / 4][i % 4]);
}

/// Takes them back.
template <int kTiles, int kThreads>
KDA_DEVICE void unpark(Shared<float> place, int thread, FloatMatrix<8, 4>& x) {
  KDA_UNROLL
  for (int i = 0; i < 4 * kTiles; ++i) x[i / 4][i % 4] = device::load(place, i * kThreads + thread);
}

/// U of a chunk, and p Qg S as the start of o.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void early_step(const PrefillParams& p, const ChainPlace& place, int chunk,
                           const ChunkMemory& memory, int warp, int lane,
                           const LaneOffsets& offsets, const StateTiles& s, FloatMatrix<8, 4>& u,
                           FloatMatrix<8, 4>& o) {
  using Format = PrefillFormat<kPolicy>;
  using Stage = StageFormat<kPolicy>;
  constexpr int kSmall = Format::kSmallParts;
  PowerScale upper{1.F, 1.F};
  PowerScale lower{1.F, 1.F};
  if constexpr (Format::kWideF16) row_scales<16>(s, upper, lower);
  FloatMatrix<8, 4> r = {};
  read_state<kPolicy>(memory.early, s, upper, lower, offsets, r, o);
  subtract_reads<kPolicy, kColumnsV>(memory.early, lane, upper, lower, offsets, r);
  scale_reads<kPolicy>(memory.early, lane, upper, lower, o);
  park<Stage::kParkedTiles, 2 * kColumnsV>(memory.parked, 32 * warp + lane, o);
  Fragment<kSmall> r_parts[4];
  KDA_UNROLL
  for (int i = 0; i < 4; ++i) {
    fragment_of<false, kSmall>(r[2 * i], r[2 * i + 1], 1.F, 1.F, r_parts[i]);
  }
  multiply_triangle<kSmall, Format::kTParts>(memory.early + Stage::kT, offsets, r_parts, u);
  if (p.stages.U) store_stage_u<kPolicy>(p, place, chunk, memory.early, warp, lane, u);
}

/// The next state and the outputs of a chunk.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_DEVICE void late_step(const PrefillParams& p, const ChainPlace& place, int chunk,
                          const ChunkMemory& memory, int warp, int lane, const LaneOffsets& offsets,
                          const FloatMatrix<8, 4>& u, FloatMatrix<8, 4>& o, StateTiles& s) {
  using Format = PrefillFormat<kPolicy>;
  using Stage = StageFormat<kPolicy>;
  constexpr int kSmall = Format::kSmallParts;
  Fragment<kSmall> u_parts[4];
  KDA_UNROLL
  for (int i = 0; i < 4; ++i) {
    fragment_of<false, kSmall>(u[2 * i], u[2 * i + 1], 1.F, 1.F, u_parts[i]);
  }
  // The state first: the next chunk waits for it.
  update_state<kPolicy>(memory.late, lane, offsets, u_parts, s);
  unpark<Stage::kParkedTiles, 2 * kColumnsV>(memory.parked, 32 * warp + lane, o);
  multiply_triangle<kSmall, kSmall>(memory.late + Stage::kQ, offsets, u_parts, o);
  store_output<kPolicy>(p, place, chunk, memory.late, warp, lane, o);
}

/// kColumnsV value columns a block, 16 a warp.
template <PrefillPolicy kPolicy, int kColumnsV>
KDA_KERNEL(kColumnsV * 2)
prefill_chain_kernel(PrefillParams p) {
  using Stage = StageFormat<kPolicy>;
  constexpr int kEarlyBytes = Stage::early_bytes(kColumnsV);
  device::SharedCarver carver;
  const Shared<std::byte> all = carver.template take<std::byte>(Stage::shared_bytes(kColumnsV));

  const auto row = static_cast<std::int64_t>(device::block_idx_y());
  const std::int64_t block = row * device::grid_dim_x() + device::block_idx_x();
  if (block >= p.num_blocks) return;
  const int thread = static_cast<int>(device::thread_idx_x());
  const int warp = thread / 32;
  const int lane = static_cast<int>(device::lane_id());
  const ChainPlace place = chain_place(p, block, kColumnsV);
  const LaneOffsets offsets = LaneOffsets::of<kColumnsV>(warp, lane);
  const std::int64_t state_size = std::int64_t{kPrefillDim} * kPrefillDim;
  const int in_state = state_offset(p.state_v_first, place.v0 + 16 * warp, lane);

  StateTiles s = {};
  const RunEntry run = load_run(p, place.run);
  if (run.continues != 0) {
    load_state(p.state_v_first, p.carry_in + (place.hv * state_size + in_state), s);
  } else if (p.initial_state) {
    const std::int64_t slot = static_cast<std::int64_t>(run.n) * p.HV + place.hv;
    load_state(p.state_v_first, p.initial_state + (slot * state_size + in_state), s);
  }
  const auto first = static_cast<int>(run.chunk - p.first_chunk);
  const int chunks = run.chunks;
  ChunkMemory memory{};
  memory.late = all + Stage::kEarly * kEarlyBytes;
  memory.parked = (memory.late + Stage::kLateBytes).template as<float>();
  copy_early<kPolicy, kColumnsV>(p, place, first, all, thread);
  device::copy_commit();
  KDA_NO_UNROLL
  for (int i = 0; i < chunks; ++i) {
    const int chunk = first + i;
    const bool more = i + 1 < chunks;
    // Read anew: addresses for copies, once computed, would be kept from chunk to chunk.
    const int copier = static_cast<int>(device::opaque(device::thread_idx_x()));
    memory.early = all + i % Stage::kEarly * kEarlyBytes;
    device::copy_wait<0>();
    // Everyone's copies of the early part are there, and nobody reads the chunk before any more.
    device::sync_block();
    copy_late<kPolicy, kColumnsV>(p, place, chunk, memory.late, copier);
    device::copy_commit();
    if constexpr (Stage::kEarly == 2) {
      if (more) {
        copy_early<kPolicy, kColumnsV>(p, place, chunk + 1, all + (i + 1) % 2 * kEarlyBytes,
                                       copier);
      }
      device::copy_commit();
    }
    if (p.h) {
      const std::int64_t slot = (p.first_chunk + chunk) * p.HV + place.hv;
      store_state(p.state_v_first, p.h + (slot * state_size + in_state), s);
    }
    FloatMatrix<8, 4> u = {};
    FloatMatrix<8, 4> o = {};
    early_step<kPolicy, kColumnsV>(p, place, chunk, memory, warp, lane, offsets, s, u, o);
    device::copy_wait<Stage::kEarly - 1>();
    // Everyone's copies of the late part are there, and nobody reads the early one any more.
    device::sync_block();
    if constexpr (Stage::kEarly == 1) {
      if (more) copy_early<kPolicy, kColumnsV>(p, place, chunk + 1, memory.early, copier);
      device::copy_commit();
    }
    late_step<kPolicy, kColumnsV>(p, place, chunk, memory, warp, lane, offsets, u, o, s);
  }
  // Loaded again: kept through the loop, it would take registers.
  const RunEntry ended = load_run(p, place.run);
  if (ended.continued != 0) {
    store_state(p.state_v_first, p.carry_out + (place.hv * state_size + in_state), s);
  } else if (p.final_state) {
    const std::int64_t slot = static_cast<std::int64_t>(ended.n) * p.HV + place.hv;
    store_state(p.state_v_first, p.final_state + (slot * state_size + in_state), s);
  }
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
