#pragma once

#include "cuda/kernels/prefill_levels.hpp"

// X = (I + L)^-1 of the chunk's L = diag(beta~) A~, strictly lower triangular, in place of A~.
// Blocks of 16x16 by forward substitution in f32, then merged to 32 and 64 through
//   [L11 0; L21 L22]: X21 = -(X22 L21) X11
// with operands of two bf16 parts. Anything coarser (single bf16, tf32, Neumann series) is lost on
// collinear keys, where the entries of X stay near 1 and those of L's powers grow.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

/// Two blocks a warp: lanes 0-15 and 16-31 have a column of a block each.
KDA_DEVICE void invert_blocks(const FactorPlace& place, const Square& A, Shared<float> betas) {
  const int base = (place.warp * 2 + place.lane / 16) * 16;
  const int column = place.lane % 16;
  Floats<16> x;
  KDA_UNROLL
  for (int i = 0; i < 16; ++i) {
    float sum = 0.F;
    KDA_UNROLL
    for (int part = 0; part < (i + 3) / 4; ++part) {
      const Vec<float, 4> a = A.four(base + i, base + 4 * part);
      KDA_UNROLL
      for (int e = 0; e < 4; ++e) {
        if (4 * part + e < i) sum = device::fma_rn(a.x[e], x[4 * part + e], sum);
      }
    }
    x[i] = device::fma_rn(-device::load(betas, base + i), sum, i == column ? 1.F : 0.F);
  }
  device::sync_warp();  // all have read what is overwritten now
  KDA_UNROLL
  for (int i = 0; i < 16; ++i) A.put(base + i, base + column, x[i]);
}

using SplitA = Fragment<2>;
using SplitB = FragmentPair<2>;

/// Rows row .., columns column .. of X as fragment A.
KDA_DEVICE void load_split_a(const Square& X, int row, int column, int lane, SplitA& a) {
  KDA_UNROLL
  for (int at = 0; at < 4; ++at) {
    const Vec<float, 2> x = X.pair(row + lane / 4 + at % 2 * 8, column + lane % 4 * 2 + at / 2 * 8);
    Words<2> parts;
    split_pair<false, 2>(x.x[0], x.x[1], parts);
    a[0][at] = parts[0];
    a[1][at] = parts[1];
  }
}

/// The same as two fragments B; rows times `betas` where that is not null.
template <bool kTimesBeta>
KDA_DEVICE void load_split_b(const Square& X, int row, int column, int lane, Shared<float> betas,
                             SplitB& b) {
  KDA_UNROLL
  for (int at = 0; at < 4; ++at) {
    const int i = row + lane % 4 * 2 + at % 2 * 8;
    const int j = column + lane / 4 + at / 2 * 8;
    float top = X.get(i, j);
    float bottom = X.get(i + 1, j);
    if constexpr (kTimesBeta) {
      top *= device::load(betas, i);
      bottom *= device::load(betas, i + 1);
    }
    Words<2> parts;
    split_pair<false, 2>(top, bottom, parts);
    b[0][at] = parts[0];
    b[1][at] = parts[1];
  }
}

/// d += a b for 16x16 blocks.
KDA_DEVICE void multiply_block(FloatMatrix<2, 4>& d, const SplitA& a, const SplitB& b) {
  multiply_parts<false, 2, 2>(d[0], a, b, 0);
  multiply_parts<false, 2, 2>(d[1], a, b, 1);
}

KDA_DEVICE void put_negative(const Square& X, int row, int column, int lane,
                             const FloatMatrix<2, 4>& d) {
  KDA_UNROLL
  for (int which = 0; which < 2; ++which) {
    KDA_UNROLL
    for (int group = 0; group < 2; ++group) {
      X.put_pair(row + lane / 4 + 8 * group, column + 8 * which + lane % 4 * 2,
                 -d[which][2 * group], -d[which][2 * group + 1]);
    }
  }
}

/// 16 -> 32 for the rows from `base` on, by one warp.
KDA_DEVICE void merge_16(const Square& X, int base, int lane, Shared<float> betas) {
  SplitA a;
  SplitB b;
  FloatMatrix<2, 4> w = {};
  load_split_a(X, base + 16, base + 16, lane, a);
  load_split_b<true>(X, base + 16, base, lane, betas, b);
  multiply_block(w, a, b);
  fragment_of<false, 2>(w[0], w[1], 1.F, 1.F, a);
  load_split_b<false>(X, base, base, lane, betas, b);
  FloatMatrix<2, 4> x = {};
  multiply_block(x, a, b);
  device::sync_warp();  // all have read what is overwritten now
  put_negative(X, base + 16, base, lane, x);
}

/// Rows 32 + 16 t .. of 32 -> 64. Results stay in registers, since another warp reads their place.
KDA_DEVICE void merge_32(const Square& X, int t, int lane, Shared<float> betas,
                         FloatMatrix<2, 4>& left, FloatMatrix<2, 4>& right) {
  FloatMatrix<2, 4> w[2] = {};
  SplitA a;
  SplitB b;
  for (int block = 0; block <= t; ++block) {
    load_split_a(X, 32 + 16 * t, 32 + 16 * block, lane, a);
    KDA_UNROLL
    for (int n = 0; n < 2; ++n) {
      load_split_b<true>(X, 32 + 16 * block, 16 * n, lane, betas, b);
      multiply_block(w[n], a, b);
    }
  }
  fragment_of<false, 2>(w[0][0], w[0][1], 1.F, 1.F, a);
  load_split_b<false>(X, 0, 0, lane, betas, b);
  multiply_block(left, a, b);
  fragment_of<false, 2>(w[1][0], w[1][1], 1.F, 1.F, a);
  load_split_b<false>(X, 16, 0, lane, betas, b);
  multiply_block(left, a, b);
  load_split_b<false>(X, 16, 16, lane, betas, b);
  multiply_block(right, a, b);
}

/// The whole inverse; all threads of the block.
KDA_DEVICE void invert(const FactorPlace& place, const Square& A, Shared<float> betas) {
  const bool works = place.warp < 2;
  if (works) {
    invert_blocks(place, A, betas);
    device::sync_warp();
    merge_16(A, 32 * place.warp, place.lane, betas);
  }
  device::sync_block();
  FloatMatrix<2, 4> left = {};
  FloatMatrix<2, 4> right = {};
  if (works) merge_32(A, place.warp, place.lane, betas, left, right);
  device::sync_block();
  if (works) {
    put_negative(A, 32 + 16 * place.warp, 0, place.lane, left);
    put_negative(A, 32 + 16 * place.warp, 16, place.lane, right);
  }
  device::sync_block();
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
