#pragma once

#include "reference/peer_prefill.hpp"

#include <cmath>
#include <vector>

#include <Eigen/Dense>

// The part of the prefill peer that depends on one chunk alone, and its operand arithmetic.

namespace kda::reference::peer {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;
using Row = Eigen::RowVectorXf;

inline constexpr Eigen::Index kChunk = 64;

/// An operand as the matrix unit sees it: one part, or a part and the rest.
struct Operand {
  Matrix high;
  Matrix low;  ///< empty unless split
  [[nodiscard]] Matrix value() const { return low.size() == 0 ? high : Matrix(high + low); }
};

[[nodiscard]] Operand round_to(OperandFormat format, const Matrix& x);
/// The transposed operand.
[[nodiscard]] Operand transposed(const Operand& x);
/// a b, all products of parts but that of the two rests, added in f32.
[[nodiscard]] Matrix product(const Operand& a, const Operand& b);

/// Each row times its power of two: the largest element comes into [2^14, 2^15), where f16 has all
/// of its bits. A row of zeros or with an infinity is left alone.
struct ScaledRows {
  Matrix scaled;
  Vector unscale;  ///< one power of two a row; multiplied in, it restores the row
};
[[nodiscard]] ScaledRows scale_rows(const Matrix& x);

/// One chunk as the kernel reads it, 64 rows. Where q and k are not normalised, their rows come
/// with a power of two each, so that the largest element is in [0.5, 1): k here is key_scale times
/// the key, likewise q, v is key_scale times the value and beta is divided by key_scale^2. That is
/// the same recurrence, exactly.
struct ChunkInputs {
  Matrix q;            ///< [C,K]
  Matrix k;            ///< [C,K]
  Matrix v;            ///< [C,V]
  Matrix g_log2;       ///< [C,K]
  Vector beta;         ///< [C]
  Vector key_scale;    ///< [C]
  Vector query_scale;  ///< [C]
};

struct Factors {
  Matrix A;              ///< [C,C]
  Matrix Q;              ///< [C,C]
  Matrix X;              ///< [C,C]
  Matrix T;              ///< [C,C]
  Operand Kg, Qg, Kd;    ///< [C,K], as the formats hold them
  Vector token_unscale;  ///< [C], of Kg and Qg
  Row channel_unscale;   ///< [K], of Kd
  Row decay, keep;       ///< [K]: S decayed = S * decay + S * keep, keep 0 or 1
};

/// (I + L)^-1 of a strictly lower triangular L, [16 2^n, 16 2^n]: blocks of 16 by substitution in
/// f32, merged with operands of the format.
[[nodiscard]] Matrix inverse(const Matrix& L, OperandFormat merges);

[[nodiscard]] Factors factorise(const ChunkInputs& x, const PeerFormats& formats);

}  // namespace kda::reference::peer
