#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/kernels/fit_real.hpp"

// QR by Givens rotations, a row at a time: samples are never stored, so there may be any number of
// them, and triangles of parts are merged as rows of one another (a tall-skinny QR). Backward
// stable like Householder's, and every order of operations is fixed by lane and step.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

/// R of the columns 1, x, x^2 and, in the last column, Q^T y. Entries below the diagonal are not
/// used; a diagonal may have either sign.
template <class Real>
struct Triangle {
  Real at[3][4];

  KDA_DEVICE void clear() {
    KDA_UNROLL
    for (int i = 0; i < 3; ++i) {
      KDA_UNROLL
      for (int j = 0; j < 4; ++j) at[i][j] = real_of<Real>(0);
    }
  }

  /// Rotates a row, whose entries left of kFirst are zero, into the triangle; what is left of it
  /// belongs to the residual.
  template <int kFirst>
  KDA_DEVICE void absorb(Real (&row)[4]) {
    KDA_UNROLL
    for (int i = kFirst; i < 3; ++i) {
      const Real norm = root(mul_add(row[i], row[i], mul(at[i][i], at[i][i])));
      if (to_double(norm) == 0) continue;
      const Real c = div(at[i][i], norm);
      const Real s = div(row[i], norm);
      at[i][i] = norm;
      KDA_UNROLL
      for (int j = i + 1; j < 4; ++j) {
        const Real above = at[i][j];
        at[i][j] = mul_add(s, row[j], mul(c, above));
        row[j] = mul_sub(s, above, mul(c, row[j]));
      }
    }
  }

  /// Row kRow of the triangle of the lane `step` away, absorbed.
  template <int kRow>
  KDA_DEVICE void absorb_from(const Triangle& other) {
    Real row[4];
    KDA_UNROLL
    for (int j = 0; j < 4; ++j) row[j] = other.at[kRow][j];
    absorb<kRow>(row);
  }

  /// Every lane ends with a triangle of all lanes' rows. Lanes rotate in different orders, so that
  /// their bits differ; use those of one lane.
  KDA_DEVICE void merge_warp() {
    KDA_NO_UNROLL
    for (int step = 1; step < 32; step *= 2) {
      Triangle other;
      KDA_UNROLL
      for (int i = 0; i < 3; ++i) {
        KDA_UNROLL
        for (int j = 0; j < 4; ++j) {
          other.at[i][j] = j < i ? real_of<Real>(0) : exchange(at[i][j], step);
        }
      }
      absorb_from<0>(other);
      absorb_from<1>(other);
      absorb_from<2>(other);
    }
  }
};

/// Solves R z = right in place; zero on the diagonal gives infinities or NaN.
template <class Real>
KDA_DEVICE void back_substitute(const Triangle<Real>& triangle, Real (&right)[3]) {
  const auto& r = triangle.at;
  right[2] = div(right[2], r[2][2]);
  right[1] = div(mul_sub(r[1][2], right[2], right[1]), r[1][1]);
  right[0] = mul_sub(r[0][2], right[2], mul_sub(r[0][1], right[1], right[0]));
  right[0] = div(right[0], r[0][0]);
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
