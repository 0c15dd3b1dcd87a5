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
};

/// A warp's 8x8 block below the diagonal in two parts of at most 16 sums, as registers allow: the
/// columns 0 and 1, and the columns 2 to 6. Slots that are left over take the diagonal of Q~.
template <bool kLate>
struct LeafSlots {
  static constexpr int kFirstColumn = kLate ? 2 : 0;
  static constexpr int kEndColumn = kLate ? 7 : 2;
  static constexpr int kPairs = kLate ? 15 : 13;

  /// Slot of (j + 1, j); those of larger i follow.
  KDA_DEVICE static constexpr int first(int j) {
    return (kOwnRows - 1) * (j - kFirstColumn) -
           (j * (j - 1) - kFirstColumn * (kFirstColumn - 1)) / 2;
  }
  /// The column of a slot.
  KDA_DEVICE static int column(int slot) {
    int j = kFirstColumn;
    KDA_UNROLL
    for (int next = kFirstColumn + 1; next < kEndColumn; ++next) j += slot >= first(next) ? 1 : 0;
    return j;
  }
  KDA_DEVICE static constexpr int first_diagonal(bool query) {
    return kLate ? (query ? 7 : 6) : (query ? 3 : 0);
  }
};

/// Only the earlier token of a pair is scaled here; a register for each row's scale would be too
/// many, so that of the later one comes last.
template <bool kQuery, bool kLate>
KDA_DEVICE void leaf_part(const FactorPlace& place, const OwnRows& rows, Shared<float> k_scales,
                          Shared<float> q_scales, const Square& A, const Square& Q) {
  using Slots = LeafSlots<kLate>;
  constexpr int kDiagonal = Slots::first_diagonal(kQuery);
  Floats<16> sums = {};
  KDA_UNROLL
  for (int e = 0; e < kOwnChannels; ++e) {
    KDA_UNROLL
    for (int d = Slots::kPairs; d < 16; ++d) {
      const int j = kDiagonal + d - Slots::kPairs;
      sums[d] = device::fma_rn(OwnRows::element(rows.q[j], e), rows.key(j, e), sums[d]);
    }
    KDA_UNROLL
    for (int j = Slots::kFirstColumn; j < Slots::kEndColumn; ++j) {
      float w = rows.key(j, e);
      KDA_UNROLL
      for (int i = j + 1; i < kOwnRows; ++i) {
        w *= rows.decay[i][e];
        const float x = OwnRows::element(kQuery ? rows.q[i] : rows.k[i], e);
        const int slot = Slots::first(j) + i - j - 1;
        sums[slot] = device::fma_rn(x, w, sums[slot]);
      }
    }
  }
  const float sum = combine_across<16, false>(sums, place.lane);
  if (place.lane % 2 != 0) return;  // two lanes have every sum
  const int slot = place.lane / 2;
  const bool on_diagonal = slot >= Slots::kPairs;
  const int column = Slots::column(slot);
  const int j = on_diagonal ? kDiagonal + slot - Slots::kPairs : column;
  const int i = on_diagonal ? j : j + 1 + slot - Slots::first(column);
  const bool query = kQuery || on_diagonal;
  const Square& to = query ? Q : A;
  const float scale = device::load(query ? q_scales : k_scales, place.row(i));
  to.put(place.row(i), place.row(j), sum * scale);
}

/// Operands of a level: rows 0-63 are keys of all tokens, rows 64-95 queries of the later halves.
template <PrefillPolicy kPolicy>
struct LevelOperands {
  static constexpr int kParts = PrefillFormat<kPolicy>::kWideParts;
  static constexpr int kRows = kPrefillChunk + kPrefillChunk / 2;
  static constexpr int kPartBytes = kRows * kPaddedRow;
  static constexpr int kBytes = kParts * kPartBytes;
  Shared<std::byte> bytes;

  KDA_DEVICE void put(int row, int channel, const Channels& x) const {
    Words<kParts> left;
    Words<kParts> right;
    split_pair<PrefillFormat<kPolicy>::kWideF16, kParts>(x[0], x[1], left);
    split_pair<PrefillFormat<kPolicy>::kWideF16, kParts>(x[2], x[3], right);
    KDA_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const int at = part * kPartBytes + padded_byte(row, channel);
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
  const int query_row = kPrefillChunk + (half / 2 * warps + place.warp % warps) * kOwnRows;
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
  int a_row[2];      ///< operand rows of each group
  int out_row[2];    ///< tokens of each group
  bool is_query[2];  ///< Q~, else A~
  int b_row;         ///< first token of the earlier half's columns
  int columns;       ///< 8 or 16
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
      device::ldmatrix(a[part],
                       (at + padded_byte(a_row, 16 * step + lane / 16 * 8)).template as<Bf16>());
      device::ldmatrix(b[part],
                       (at + padded_byte(b_row, 16 * step + lane / 8 % 2 * 8)).template as<Bf16>());
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
