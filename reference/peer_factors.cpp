#include "reference/peer_factors.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kda::reference::peer {
namespace {

using Eigen::Index;

constexpr Index kLeaf = 8;
constexpr float kFixed = 0x1p14F;  // |k| <= 1 times this is inside f16

float tf32(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7F800000U) != 0x7F800000U) bits += 0xFFFU + ((bits >> 13) & 1U);
  bits &= ~0x1FFFU;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

float bf16(float x) { return to_float(to_bf16(x)); }
float f16(float x) { return to_float(to_f16(x)); }

/// 2^x, subnormal results are 0: what the fast hardware function does.
float exp2_flushed(float x) {
  const float y = std::exp2(x);
  return y < std::numeric_limits<float>::min() ? 0.F : y;
}

Matrix exp2(const Matrix& x) { return x.unaryExpr(&exp2_flushed); }

/// Multiplied by 2^14 where the format has few exponents; `unscale` of a product of two such.
float fixed_scale(OperandFormat format) { return format == OperandFormat::kF16 ? kFixed : 1.F; }

/// A and Q inside one block of 8 rows: decays multiplied token by token, no operand rounding.
void leaf(const ChunkInputs& x, const Matrix& decay, Index first, Factors& f) {
  for (Index j = first; j < first + kLeaf; ++j) {
    Row w = x.k.row(j);
    f.Q(j, j) = x.q.row(j).dot(w);
    for (Index i = j + 1; i < first + kLeaf; ++i) {
      w = w.cwiseProduct(decay.row(i));
      f.A(i, j) = x.k.row(i).dot(w);
      f.Q(i, j) = x.q.row(i).dot(w);
    }
  }
}

/// The h x h block of A and Q below the diagonal of rows [first, first + 2h): both sides decay to
/// the boundary between the halves, so no exponent is positive.
void level(const ChunkInputs& x, const Matrix& decay, Index first, Index h, OperandFormat format,
           Factors& f) {
  Matrix before(h, x.k.cols());  // from the boundary to row i of the second half, itself included
  Matrix after(h, x.k.cols());   // from after row j of the first half to the boundary
  before.row(0) = decay.row(first + h);
  for (Index i = 1; i < h; ++i) {
    before.row(i) = before.row(i - 1).cwiseProduct(decay.row(first + h + i));
  }
  after.row(h - 1).setOnes();
  for (Index j = h - 1; j-- > 0;) {
    after.row(j) = after.row(j + 1).cwiseProduct(decay.row(first + j + 1));
  }
  const float scale = fixed_scale(format);
  const auto operand = [&](const Matrix& rows, Index from, const Matrix& factor) {
    return round_to(format, scale * rows.middleRows(from, h).cwiseProduct(factor));
  };
  const Operand keys = transposed(operand(x.k, first, after));
  const float unscale = 1 / (scale * scale);
  f.A.block(first + h, first, h, h) = unscale * product(operand(x.k, first + h, before), keys);
  f.Q.block(first + h, first, h, h) = unscale * product(operand(x.q, first + h, before), keys);
}

/// (I + L)^-1 of a strictly lower 16x16 L, column by column, f32.
Matrix substituted(const Matrix& L) {
  const Index size = L.rows();
  Matrix X = Matrix::Identity(size, size);
  for (Index i = 1; i < size; ++i) {
    for (Index j = 0; j < i; ++j) X.row(i) -= L(i, j) * X.row(j);
  }
  return X;
}

/// Kg and Qg: with f16 a token's largest factor becomes a power of two of its own.
void gated_operands(const ChunkInputs& x, const Matrix& decay, OperandFormat format, Factors& f) {
  constexpr int kSmallest = -100;
  Matrix factor = decay;  // exp(G), as a product
  for (Index i = 1; i < kChunk; ++i) {
    factor.row(i) = factor.row(i).cwiseProduct(factor.row(i - 1));
  }
  f.token_unscale = Vector::Ones(kChunk);
  if (format == OperandFormat::kF16) {
    for (Index i = 0; i < kChunk; ++i) {
      const float largest = factor.row(i).maxCoeff();
      const int power = largest > 0 ? std::max(std::ilogb(largest), kSmallest) : kSmallest;
      factor.row(i) *= std::ldexp(kFixed, -power);
      f.token_unscale(i) = std::ldexp(1.F, power) / kFixed;
    }
  }
  f.Kg = round_to(format, x.k.cwiseProduct(factor));
  f.Qg = round_to(format, x.q.cwiseProduct(factor));
}

/// Kd: with f16 the decays count to the last token that writes, the rest is a factor by channel.
void written_operand(const ChunkInputs& x, const Matrix& decay, OperandFormat format, Factors& f) {
  Index last = kChunk - 1;
  if (format == OperandFormat::kF16) {
    while (last >= 0 && x.beta(last) == 0) --last;
  }
  Row rest = Row::Ones(x.k.cols());
  for (Index i = kChunk - 1; i > last; --i) rest = rest.cwiseProduct(decay.row(i));
  f.channel_unscale = rest / fixed_scale(format);
  Matrix values = Matrix::Zero(kChunk, x.k.cols());
  Row run = fixed_scale(format) * Row::Ones(x.k.cols());
  for (Index i = last; i >= 0; --i) {
    values.row(i) = x.k.row(i).cwiseProduct(run);
    run = run.cwiseProduct(decay.row(i));
  }
  f.Kd = round_to(format, values);
}

/// exp of the whole chunk's decay; near 1 as its distance from 1.
void decay_of(const ChunkInputs& x, Factors& f) {
  constexpr float kLn2 = 0.693147180559945309F;
  Row total = Row::Zero(x.k.cols());
  for (Index i = 0; i < kChunk; ++i) total += x.g_log2.row(i);
  f.decay.resize(total.size());
  f.keep.resize(total.size());
  for (Index c = 0; c < total.size(); ++c) {
    const float g = total(c) * kLn2;
    f.keep(c) = g > -0.7F ? 1.F : 0.F;
    f.decay(c) = g > -0.7F ? std::expm1(g) : std::exp(g);
  }
}

}  // namespace

Operand round_to(OperandFormat format, const Matrix& x) {
  switch (format) {
    case OperandFormat::kF32: return {x, {}};
    case OperandFormat::kTf32: return {x.unaryExpr(&tf32), {}};
    case OperandFormat::kF16: return {x.unaryExpr(&f16), {}};
    case OperandFormat::kBf16: return {x.unaryExpr(&bf16), {}};
    case OperandFormat::kBf16Split: break;
  }
  Operand split{x.unaryExpr(&bf16), {}};
  split.low = (x - split.high).unaryExpr(&bf16);
  return split;
}

Operand transposed(const Operand& x) { return {x.high.transpose(), x.low.transpose()}; }

Matrix product(const Operand& a, const Operand& b) {
  Matrix sum = a.high * b.high;
  if (b.low.size() != 0) sum += a.high * b.low;
  if (a.low.size() != 0) sum += a.low * b.high;
  return sum;
}

ScaledRows scale_rows(const Matrix& x) {
  constexpr int kTop = 15;
  constexpr int kRange = 100;  // 2^kRange and 2^-kRange are normal numbers
  ScaledRows rows{x, Vector::Ones(x.rows())};
  for (Index i = 0; i < x.rows(); ++i) {
    const float largest = x.row(i).cwiseAbs().maxCoeff();
    if (!(largest > 0) || std::isinf(largest)) continue;
    int exponent = 0;
    static_cast<void>(std::frexp(largest, &exponent));
    const int shift = std::clamp(kTop - exponent, -kRange, kRange);
    rows.scaled.row(i) *= std::ldexp(1.F, shift);
    rows.unscale(i) = std::ldexp(1.F, -shift);
  }
  return rows;
}

Matrix inverse(const Matrix& L, OperandFormat merges) {
  const Index size = L.rows();
  if (size == 16) return substituted(L);
  const Index half = size / 2;
  Matrix X = Matrix::Zero(size, size);
  X.topLeftCorner(half, half) = inverse(L.topLeftCorner(half, half), merges);
  X.bottomRightCorner(half, half) = inverse(L.bottomRightCorner(half, half), merges);
  const auto operand = [&](const Matrix& block) { return round_to(merges, block); };
  const Matrix inner =
      product(operand(X.bottomRightCorner(half, half)), operand(L.bottomLeftCorner(half, half)));
  X.bottomLeftCorner(half, half) = -product(operand(inner), operand(X.topLeftCorner(half, half)));
  return X;
}

Factors factorise(const ChunkInputs& x, const PeerFormats& formats) {
  constexpr float kLargestT = 0x1p40F;
  Factors f;
  f.A = Matrix::Zero(kChunk, kChunk);
  f.Q = Matrix::Zero(kChunk, kChunk);
  const Matrix decay = exp2(x.g_log2);
  for (Index first = 0; first < kChunk; first += kLeaf) leaf(x, decay, first, f);
  for (Index h = kLeaf; h < kChunk; h *= 2) {
    for (Index first = 0; first < kChunk; first += 2 * h) {
      level(x, decay, first, h, formats.levels, f);
    }
  }
  f.X = inverse(x.beta.asDiagonal() * f.A, formats.merges);
  f.T = (f.X * x.beta.asDiagonal()).cwiseMax(-kLargestT).cwiseMin(kLargestT);
  gated_operands(x, decay, formats.gated, f);
  written_operand(x, decay, formats.written, f);
  decay_of(x, f);
  return f;
}

}  // namespace kda::reference::peer
