#pragma once

#include "cuda/kernels/prefill_rows.hpp"

// A~ and Q~ of a chunk, sum_c x_ic k~_jc exp(G_ic - G_jc). No difference of sums is ever taken: the
// factor of a pair is a product of decays between its tokens. Within the 8 tokens of a warp pair by
// pair in f32; between neighbouring halves of 8, 16 and 32 tokens with the boundary as the anchor:
// exp(G_i - G_b) of the later token times exp(G_b - G_j) of the earlier one, both at most 1.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

/// 64x64 floats; the stride keeps the pairs that a fragment is loaded from in different banks.
struct Square {
  static constexpr int kStride = 72;
  static constexpr int kFloats = kPrefillChunk * kStride;
  Shared<float> values;

  [[nodiscard]] KDA_DEVICE float get(int i, int j) const {
    return device::load(values, i * kStride + j);
  }
  KDA_DEVICE void put(int i, int j, float x) const { device::store(values, i * kStride + j, x); }
  [[nodiscard]] KDA_DEVICE Vec<float, 2> pair(int i, int j) const {
    return device::load((values + (i * kStride + j)).as<const Vec<float, 2>>(), 0);
  }
  KDA_DEVICE void put_pair(int i, int j, float a, float b) const {
    device::store((values + (i * kStride + j)).as<Vec<float, 2>>(), 0, {{a, b}});
  }
  [[nodiscard]] KDA_DEVICE Vec<float, 4> four(int i, int j) const {
    return device::load((values + (i * kStride + j)).as<const Vec<float, 4>>(), 0);
  }
  KDA_DEVICE void clear(int thread, int threads) const {
    const auto pieces = values.as<Vec<float, 4>>();
    for (int at = thread; at < kFloats / 4; at += threads) {
      device::store(pieces, at, {{0.F, 0.F, 0.F, 0.F}});
    }
  }
};

/// Row i of the e-th pair (i, j), j < i, counted row by row.
KDA_DEVICE int pair_row(int e) {
  return 1 + (e >= 1 ? 1 : 0) + (e >= 3 ? 1 : 0) + (e >= 6 ? 1 : 0) + (e >= 10 ? 1 : 0) +
         (e >= 15 ? 1 : 0) + (e >= 21 ? 1 : 0);
}

/// 28 sums below the diagonal of a warp's 8x8 block, and 4 of the diagonal of Q~.
template <bool kQuery>
KDA_DEVICE void leaf(const FactorPlace& place, const OwnRows& rows, const Square& A,
                     const Square& Q) {
  constexpr int kDiagonal = kQuery ? 4 : 0;
  Floats<32> sums = {};
  KDA_UNROLL
  for (int e = 0; e < kOwnChannels; ++e) {
    KDA_UNROLL
    for (int j = 0; j < kOwnRows; ++j) {
      float w = rows.key(j, e);
      if (j / 4 == kDiagonal / 4) {
        sums[28 + j % 4] = device::fma_rn(rows.query(j, e), w, sums[28 + j % 4]);
      }
      KDA_UNROLL
      for (int i = j + 1; i < kOwnRows; ++i) {
        w *= rows.decay[i][e];
        const float x = kQuery ? rows.query(i, e) : rows.key(i, e);
        const int at = i * (i - 1) / 2 + j;
        sums[at] = device::fma_rn(x, w, sums[at]);
      }
    }
  }
  const float sum = combine_across<32, false>(sums, place.lane);
  const bool on_diagonal = place.lane >= 28;
  const int i = on_diagonal ? kDiagonal + place.lane - 28 : pair_row(place.lane);
  const int j = on_diagonal ? i : place.lane - i * (i - 1) / 2;
  const Square& to = kQuery || on_diagonal ? Q : A;
  to.put(place.row(i), place.row(j), sum);
}

/// Operands of a level: rows 0-63 are keys of all tokens, rows 64-95 queries of the later halves.
template <PrefillPolicy kPolicy>
struct LevelOperands {
  static constexpr int kParts = PrefillFormat<kPolicy>::kWideParts;
  static constexpr int kRows = kPrefillChunk + kPrefillChunk / 2;
  static constexpr int kPartBytes = kRows * kPrefillDim * 2;
  static constexpr int kBytes = kParts * kPartBytes;
  Shared<std::byte> bytes;

  KDA_DEVICE void put(int row, int channel, const Channels& x) const {
    Words<kParts> left;
    Words<kParts> right;
    split_pair<PrefillFormat<kPolicy>::kWideF16, kParts>(x[0], x[1], left);
    split_pair<PrefillFormat<kPolicy>::kWideF16, kParts>(x[2], x[3], right);
    KDA_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const int at = part * kPartBytes + prefill_tile_byte(row, channel);
      device::store((bytes + at).as<Vec<std::uint32_t, 2>>(), 0, {{left[part], right[part]}});
    }
  }
};

/// Writes the warp's rows of the level whose halves have `warps` warps.
template <PrefillPolicy kPolicy>
KDA_DEVICE void put_level_rows(const FactorPlace& place, const OwnRows& rows,
                               const WarpTotals& totals, int warps,
                               const LevelOperands<kPolicy>& operands) {
  constexpr float kScale = PrefillFormat<kPolicy>::kWideScale;
  const int half = place.warp / warps;
  const int first = half * warps;
  Channels run = {1.F, 1.F, 1.F, 1.F};
  Channels x;
  if (half % 2 == 0) {
    totals.multiply(WarpTotals::kAll, place.warp + 1, first + warps, place.channel(), run);
    KDA_UNROLL
    for (int r = kOwnRows - 1; r >= 0; --r) {
      KDA_UNROLL
      for (int e = 0; e < kOwnChannels; ++e) {
        x[e] = rows.key(r, e) * run[e] * kScale;
        run[e] *= rows.decay[r][e];
      }
      operands.put(place.row(r), place.channel(), x);
    }
    return;
  }
  totals.multiply(WarpTotals::kAll, first, place.warp, place.channel(), run);
  const int query_row =
      kPrefillChunk + (half / 2 * warps + place.warp % warps) * kOwnRows;
  KDA_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) {
      run[e] *= rows.decay[r][e];
      x[e] = rows.key(r, e) * run[e] * kScale;
    }
    operands.put(place.row(r), place.channel(), x);
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) x[e] = rows.query(r, e) * run[e] * kScale;
    operands.put(query_row + r, place.channel(), x);
  }
}

/// A 16-row tile of a level: two groups of 8 operand rows and where their sums go.
struct LevelTile {
  int a_row[2];       ///< operand rows of each group
  int out_row[2];     ///< tokens of each group
  bool is_query[2];   ///< Q~, else A~
  int b_row;          ///< first token of the earlier half's columns
  int columns;        ///< 8 or 16
};

/// What a warp multiplies on the level with halves of `half` tokens; false: nothing.
KDA_DEVICE bool level_tile(int warp, int half, LevelTile& tile) {
  if (half == 32) {
    const bool query = warp >= 4;
    const int row = warp / 2 % 2 * 16;
    for (int group = 0; group < 2; ++group) {
      tile.a_row[group] = (query ? 64 : 32) + row + 8 * group;
      tile.out_row[group] = 32 + row + 8 * group;
      tile.is_query[group] = query;
    }
    tile.b_row = warp % 2 * 16;
    tile.columns = 16;
    return true;
  }
  if (warp >= 4) return false;
  if (half == 16) {
    const bool query = warp % 2 != 0;
    const int block = warp / 2;
    for (int group = 0; group < 2; ++group) {
      tile.out_row[group] = 32 * block + 16 + 8 * group;
      tile.a_row[group] = query ? 64 + 16 * block + 8 * group : tile.out_row[group];
      tile.is_query[group] = query;
    }
    tile.b_row = 32 * block;
    tile.columns = 16;
    return true;
  }
  for (int group = 0; group < 2; ++group) {
    tile.out_row[group] = 16 * warp + 8;
    tile.a_row[group] = group == 0 ? 16 * warp + 8 : 64 + 8 * warp;
    tile.is_query[group] = group == 1;
  }
  tile.b_row = 16 * warp;
  tile.columns = 8;
  return true;
}

template <PrefillPolicy kPolicy>
KDA_DEVICE void multiply_level(const FactorPlace& place, int half,
                               const LevelOperands<kPolicy>& operands, const Square& A,
                               const Square& Q) {
  using Operands = LevelOperands<kPolicy>;
  using Format = PrefillFormat<kPolicy>;
  constexpr int kParts = Operands::kParts;
  LevelTile tile{};
  if (!level_tile(place.warp, half, tile)) return;
  const int lane = place.lane;
  const int a_row = (lane / 8 % 2 == 0 ? tile.a_row[0] : tile.a_row[1]) + lane % 8;
  const int b_row = tile.b_row + lane / 16 * 8 + lane % 8;
  FloatMatrix<2, 4> sums = {};
  KDA_UNROLL
  for (int step = 0; step < kPrefillDim / 16; ++step) {
    Fragment<kParts> a;
    FragmentPair<kParts> b;
    KDA_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const Shared<std::byte> at = operands.bytes + part * Operands::kPartBytes;
      device::ldmatrix(
          a[part], (at + prefill_tile_byte(a_row, 16 * step + lane / 16 * 8)).template as<Bf16>());
      device::ldmatrix(
          b[part],
          (at + prefill_tile_byte(b_row, 16 * step + lane / 8 % 2 * 8)).template as<Bf16>());
    }
    multiply_parts<Format::kWideF16, kParts, kParts>(sums[0], a, b, 0);
    if (tile.columns == 16) {
      multiply_parts<Format::kWideF16, kParts, kParts>(sums[1], a, b, 1);
    }
  }
  constexpr float kBack = 1.F / (Format::kWideScale * Format::kWideScale);
  KDA_UNROLL
  for (int group = 0; group < 2; ++group) {
    const Square& to = tile.is_query[group] ? Q : A;
    const int row = tile.out_row[group] + lane / 4;
    const int column = tile.b_row + lane % 4 * 2;
    to.put_pair(row, column, sums[0][2 * group] * kBack, sums[0][2 * group + 1] * kBack);
    if (tile.columns == 16) {
      to.put_pair(row, column + 8, sums[1][2 * group] * kBack, sums[1][2 * group + 1] * kBack);
    }
  }
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
