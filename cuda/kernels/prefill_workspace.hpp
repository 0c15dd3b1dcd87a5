#pragma once

#include "reference/types/dtype.hpp"

#include <cstddef>
#include <cstdint>

// What the prefill's first kernel leaves for its second: one blob per chunk and value head. Plain
// constants for host, CPU kernel and GPU kernel alike. With i, j tokens of the chunk (64), c
// channels (128), k~ = k ck and q~ = q cq (ck, cq: see `v_scale` and `o_scale`), everything in the
// operand formats of the policy:
//
//   Kg, Qg  [64][128]  k~ or q~ times exp(G_i) / p_i
//   T       10 blocks  (I + diag(beta~) A~)^-1 diag(beta~), hi and lo
//   p       [64] f32   power of two, without the scale of Kg and Qg
//   v_scale [64] f32   v is multiplied by it: 1 with l2norm, else ck
//
// which is all that U takes, and then
//
//   Kd      [64][128]  k~_j exp(sum of g over j < s <= j*), j* the last token with beta != 0
//   Q       10 blocks  Q~_ij = sum_c q~_ic k~_jc exp(G_i - G_j), i >= j
//   decay   [128] f32  exp(G_63) as decay_code (gate_math.hpp)
//   kap     [128] f32  exp(sum of g over s > j*)
//   o_scale [64] f32   o is multiplied by it: scale, or scale / cq
//
// Numbers of 16 bits, "wide" operands (Kg, Qg) times kWideScale.

namespace kda::cuda {

/// Formats of the matrix operands.
enum class PrefillPolicy : std::uint8_t {
  kMixed,  ///< f16 with power-of-two scales where 11 bits are enough, else hi + lo
  kSplit,  ///< bf16 hi + lo everywhere
  kBf16,   ///< single bf16 but for T and the inverse
};

inline constexpr int kPrefillChunk = 64;
inline constexpr int kPrefillDim = 128;  ///< K and V

template <PrefillPolicy kPolicy>
struct PrefillFormat {
  /// Wide operands (the contraction is over channels: Kg, Qg, what they read of the state, and
  /// those of A and Q between tokens) are f16 or bf16.
  static constexpr bool kWideF16 = kPolicy == PrefillPolicy::kMixed;
  static constexpr int kWideParts = kPolicy == PrefillPolicy::kSplit ? 2 : 1;
  static constexpr float kWideScale = kWideF16 ? 0x1p14F : 1.F;
  /// Operands over tokens, R, U, Q and Kd, are bf16. With one part, keys that nearly repeat would
  /// leave what is rounded in the state, write after write. T always has two parts.
  static constexpr int kSmallParts = kPolicy == PrefillPolicy::kBf16 ? 1 : 2;
  static constexpr int kTParts = 2;

  // Offsets in a blob, in bytes.
  static constexpr int kTileBytes = kPrefillChunk * kPrefillDim * 2;
  static constexpr int kTriangleBytes = 10 * 16 * 16 * 2;
  static constexpr int kKg = 0;
  static constexpr int kQg = kKg + kWideParts * kTileBytes;
  static constexpr int kT = kQg + kWideParts * kTileBytes;
  static constexpr int kP = kT + kTParts * kTriangleBytes;
  static constexpr int kVScale = kP + kPrefillChunk * 4;
  static constexpr int kKd = kVScale + kPrefillChunk * 4;
  static constexpr int kQ = kKd + kSmallParts * kTileBytes;
  static constexpr int kDecay = kQ + kSmallParts * kTriangleBytes;
  static constexpr int kKap = kDecay + kPrefillDim * 4;
  static constexpr int kOScale = kKap + kPrefillDim * 4;
  static constexpr int kBlobBytes = kOScale + kPrefillChunk * 4;
  static_assert(kBlobBytes % 128 == 0);
};

/// Byte of element (row, channel) in a part of Kg, Qg or Kd.
KDA_HOST_DEVICE constexpr int prefill_tile_byte(int row, int channel) {
  return (row * kPrefillDim + channel) * 2;
}

/// Byte of element (i, j), j / 16 <= i / 16, in a part of T or Q: 16x16 blocks, row by row of
/// blocks. Pieces of 16 bytes are permuted, so that ldmatrix meets no bank twice.
KDA_HOST_DEVICE constexpr int prefill_triangle_byte(int i, int j) {
  const int block = i / 16 * (i / 16 + 1) / 2 + j / 16;
  const int row = i % 16;
  const int unit = j % 16 / 8 ^ (row / 4 & 1);
  return block * 512 + row * 32 + unit * 16 + j % 8 * 2;
}

}  // namespace kda::cuda
