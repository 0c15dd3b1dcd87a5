#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/kernels/prefill_workspace.hpp"
#include "cuda/prefill_params.hpp"

#include <cstdint>

// Matrix operands of one or two parts of 16 bits: a number is the sum of its parts, hi and lo.
// Also what else both prefill kernels need.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

using device::FloatMatrix;
using device::Floats;
using device::Global;
using device::Shared;
using device::Vec;

/// Byte of element (row, channel) of a tile in shared memory: rows are 16 bytes apart from a
/// multiple of all banks, so that ldmatrix meets no bank twice.
inline constexpr int kPaddedRow = kPrefillDim * 2 + 16;
KDA_DEVICE constexpr int padded_byte(int row, int channel) {
  return row * kPaddedRow + channel * 2;
}

template <int N>
using Words = std::uint32_t[static_cast<unsigned>(N)];
/// A fragment of 16x16 elements (matrix A of mma) in kParts parts.
template <int kParts>
using Fragment = std::uint32_t[static_cast<unsigned>(kParts)][4];
/// Two neighbouring 16x8 fragments (matrix B) in kParts parts: words 0, 1 and words 2, 3.
template <int kParts>
using FragmentPair = std::uint32_t[static_cast<unsigned>(kParts)][4];

KDA_DEVICE float bf16_low(std::uint32_t pair) { return device::bits_float(pair << 16); }
KDA_DEVICE float bf16_high(std::uint32_t pair) { return device::bits_float(pair & 0xFFFF0000U); }

/// Two neighbouring numbers, `low` in the lower half of each part's word.
template <bool kF16, int kParts>
KDA_DEVICE void split_pair(float low, float high, Words<kParts>& parts) {
  static_assert(kParts == 1 || (kParts == 2 && !kF16));
  if constexpr (kF16) {
    parts[0] = device::pack_f16(low, high);
  } else {
    parts[0] = device::pack_bf16(low, high);
    if constexpr (kParts == 2) {
      parts[1] = device::pack_bf16(low - bf16_low(parts[0]), high - bf16_high(parts[0]));
    }
  }
}

/// Fragment A from the accumulators of two neighbouring 16x8 tiles: they hold the same elements in
/// the same lanes. `upper` and `lower` scale rows 0-7 and 8-15.
template <bool kF16, int kParts>
KDA_DEVICE void fragment_of(const Floats<4>& left, const Floats<4>& right, float upper, float lower,
                            Fragment<kParts>& a) {
  KDA_UNROLL
  for (int half = 0; half < 2; ++half) {
    const Floats<4>& tile = half == 0 ? left : right;
    Words<kParts> top;
    Words<kParts> bottom;
    split_pair<kF16, kParts>(tile[0] * upper, tile[1] * upper, top);
    split_pair<kF16, kParts>(tile[2] * lower, tile[3] * lower, bottom);
    KDA_UNROLL
    for (int part = 0; part < kParts; ++part) {
      a[part][2 * half] = top[part];
      a[part][2 * half + 1] = bottom[part];
    }
  }
}

template <bool kF16>
KDA_DEVICE void multiply(Floats<4>& d, const std::uint32_t (&a)[4], std::uint32_t b0,
                         std::uint32_t b1) {
  if constexpr (kF16) {
    device::mma_m16n8k16_f16(d, a, b0, b1);
  } else {
    device::mma_m16n8k16_bf16(d, a, b0, b1);
  }
}

/// d += a b for half `which` of a pair; lo lo is left out.
template <bool kF16, int kA, int kB>
KDA_DEVICE void multiply_parts(Floats<4>& d, const Fragment<kA>& a, const FragmentPair<kB>& b,
                               int which) {
  if constexpr (kB == 2) multiply<kF16>(d, a[0], b[1][2 * which], b[1][2 * which + 1]);
  if constexpr (kA == 2) multiply<kF16>(d, a[1], b[0][2 * which], b[0][2 * which + 1]);
  multiply<kF16>(d, a[0], b[0][2 * which], b[0][2 * which + 1]);
}

/// A 64-bit number from its lower and upper word.
KDA_DEVICE std::int64_t join_words(std::int32_t low, std::int32_t high) {
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(low)) |
         static_cast<std::int64_t>(high) << 32;
}

KDA_DEVICE ChunkEntry load_chunk(const PrefillParams& p, std::int64_t chunk) {
  const auto words = device::load(p.chunks.as<const Vec<std::int32_t, 4>>(), chunk);
  return {join_words(words.x[0], words.x[1]), words.x[2], words.x[3]};
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
