#pragma once

#include "cuda/device/cpu/memory.hpp"
#include "cuda/device/pointers.hpp"
#include "cuda/simt/executor.hpp"

#include <cstdint>

namespace kda::cuda::device {
inline namespace cpu {

namespace detail {

template <unsigned N, class T>
void ldmatrix(std::uint32_t (&r)[N], Shared<T> row, bool transposed, simt::Site site) {
  static_assert((N == 1 || N == 2 || N == 4) && sizeof(T) == 2);
  simt::MatrixLoad load{{}, row.raw, {}};
  if (simt::lane() < 8 * N) {
    // The row is read by the lane that supplies it, before the lanes meet.
    simt::check_matrix_row(row.raw, site);
    const auto words = read(row.template as<Vec<std::uint32_t, 4>>().raw);
    for (unsigned i = 0; i < 4; ++i) load.row[i] = words.x[i];
  }
  simt::ldmatrix(load, N, transposed, site);
  for (unsigned i = 0; i < N; ++i) r[i] = load.result[i];
}

}  // namespace detail

/// N = 1, 2 or 4 8x8 matrices of 16-bit elements. Lane 8m + i passes the address of row i of matrix
/// m (16 bytes, aligned); r[m] becomes elements 2(l%4), 2(l%4)+1 of row l/4.
template <unsigned N, class T>
void ldmatrix(std::uint32_t (&r)[N], Shared<T> row, simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, row, false, site);
}

/// As ldmatrix, of the transposed matrices.
template <unsigned N, class T>
void ldmatrix_trans(std::uint32_t (&r)[N], Shared<T> row, simt::Site site = simt::Site::here()) {
  detail::ldmatrix(r, row, true, site);
}

/// The transpose of an 8x8 matrix that lies in registers as ldmatrix leaves it.
inline std::uint32_t movmatrix_trans(std::uint32_t pair, simt::Site site = simt::Site::here()) {
  return simt::movmatrix(pair, site);
}

/// d[16x8] += a[16x16] b[16x8]; bf16 or f16 operands, f32 sums. Lane l, g = l/4, p = 2(l%4):
/// a = {(g,p..), (g+8,p..), (g,p+8..), (g+8,p+8..)}, b = {(p..,g), (p+8..,g)},
/// d = {(g,p), (g,p+1), (g+8,p), (g+8,p+1)}.
inline void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1, simt::Site site = simt::Site::here()) {
  simt::MmaOperands lane{d, a, {b0, b1}};
  simt::mma_m16n8k16(lane, simt::MmaType::kBf16, site);
}
inline void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1, simt::Site site = simt::Site::here()) {
  simt::MmaOperands lane{d, a, {b0, b1}};
  simt::mma_m16n8k16(lane, simt::MmaType::kF16, site);
}

}  // namespace cpu
}  // namespace kda::cuda::device
