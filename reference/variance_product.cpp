#include "reference/variance_isa.hpp"
#include "reference/vector.hpp"

// MatrixRef products for the variance bound; sums of a block of rows and columns stay in registers.
// Must not include the standard library (see vector.hpp).

namespace kda::reference::KDA_ISA {
namespace {

constexpr int kRows = kLanes * sizeof(Real) == 64 ? 8 : 4;
constexpr int kVectors = 3;  // 12 sums in 16 registers, 24 in 32

/// R rows and N vectors of columns of a product over k terms.
template <unsigned R, unsigned N>
inline void block_product(LeftSide left, const Real* right, long pitch, int k, Store mode,
                          Real* out, long out_pitch) {
  Vec sums[R][N] = {};
  for (int j = 0; j < k; ++j) {
    Vec row[N];
    for (unsigned n = 0; n < N; ++n) row[n] = load(right + j * pitch + long{n} * kLanes);
    for (unsigned i = 0; i < R; ++i) {
      const Real x = left.data[i * left.row + j * left.column];
      for (unsigned n = 0; n < N; ++n) sums[i][n] += row[n] * x;
    }
  }
  for (unsigned i = 0; i < R; ++i) {
    for (unsigned n = 0; n < N; ++n) {
      Real* at = out + i * out_pitch + long{n} * kLanes;
      store(mode == Store::kAdd ? load(at) + sums[i][n] : sums[i][n], at);
    }
  }
}

/// All rows of N vectors of columns.
template <unsigned N>
void panel_product(LeftSide left, MatrixRef right, Extents extents, Shape shape, Store mode,
                   MatrixRef out) {
  int i = 0;
  const auto terms = [&](int row_end) {
    return shape == Shape::kLower && row_end < extents.k ? row_end : extents.k;
  };
  for (; i + kRows <= extents.m; i += kRows) {
    block_product<kRows, N>({left.data + i * left.row, left.row, left.column}, right.data,
                            right.pitch, terms(i + kRows), mode, out.data + i * out.pitch,
                            out.pitch);
  }
  for (; i < extents.m; ++i) {
    block_product<1, N>({left.data + i * left.row, left.row, left.column}, right.data, right.pitch,
                        terms(i + 1), mode, out.data + i * out.pitch, out.pitch);
  }
}

}  // namespace

void product(LeftSide left, MatrixRef right, Extents extents, Shape shape, Store mode,
             MatrixRef out) {
  int vectors = static_cast<int>(up_to(extents.n, kPadding)) / kLanes;
  while (vectors > 0) {
    // Four are better cut into two and two than into three and one.
    const int now = vectors == 4 ? 2 : (vectors < kVectors ? vectors : kVectors);
    if (now == 3) panel_product<3>(left, right, extents, shape, mode, out);
    if (now == 2) panel_product<2>(left, right, extents, shape, mode, out);
    if (now == 1) panel_product<1>(left, right, extents, shape, mode, out);
    right.data += long{now} * kLanes;
    out.data += long{now} * kLanes;
    vectors -= now;
  }
}

}  // namespace kda::reference::KDA_ISA
