#pragma once

// One block of tokens of the variance bound, compiled once per instruction set and type of number
// (see variance_block.cpp). Plain data and function pointers only, for the reason that
// fast_kernel.hpp gives.

namespace kda::reference {

inline constexpr int kBoundTokens = 128;  ///< most tokens of a block
inline constexpr int kScoreRows = 16;     ///< rows of scores that are computed together

/// RMS of the relative rounding error over u when mantissas are log-uniform: the error is uniform
/// on +-u 2^e and 2^e / |x| goes from 1/2 to 1, so sqrt(1/3) sqrt(3 / (8 ln 2)).
inline constexpr double kKappa = 0.4248;

/// A row-major matrix; rows are `pitch` apart.
template <class Real>
struct Matrix {
  Real* data;
  long pitch;
};
using MatrixRef = Matrix<double>;

/// Formats as the formulas of docs/bound.md use them. rho = (0.4248 u)^2 is the variance of one
/// rounding of 1.
template <class Real>
struct BoundFactorsOf {
  Real rho_operands;
  Real rho_triangle;
  Real rho_solve;
  Real rho_accumulation;
  Real rho_state;      ///< of one rounding of the state at its storage; 0 = none of its own
  Real rho_output;     ///< of o, with the roundings of the sum that makes it
  Real gate_unit;      ///< u of the gate
  Real state_stall;    ///< u of a state stored every token, else 0
  Real sum_roundings;  ///< n_a: roundings of a sum over K
  Real underflow;      ///< eta^2 / 3 of an operand that is multiplied with a value
  Real sum_underflow;  ///< eta^2 of the sums, likewise
  Real scale;          ///< of o
};

using BoundFactors = BoundFactorsOf<double>;

/// eta^2 / 3 of what is rounded itself, for every column [V], in units of the column squared.
template <class Real>
struct ColumnUnderflow {
  Real* operands;
  Real* sums;  ///< eta^2
  Real* state;
  Real* output;  ///< of o with its scale
};

inline constexpr int kEchoes = 16;  ///< most that are carried from block to block

/// Errors of T that repeat (variance_echo.cpp), each with the number that T repeats along one of
/// its diagonals and the error of the state that it has made. A block may add as many again. They
/// are added up with their signs, in f64.
template <class Real>
struct EchoesOf {
  int count;
  int diagonal[2 * kEchoes];
  int before[2 * kEchoes];   ///< place of the same echo before the block, or -1
  Real value[2 * kEchoes];   ///< |T|
  Real weight[2 * kEchoes];  ///< squared sum of what T repeats in the block; 0 = it does not
  Real gain;                 ///< for what is too small to be carried
  int block;                 ///< tokens of a whole block
  int sizes;                 ///< block sizes of implementations: `block`, half, a quarter of it
  Matrix<Real> Z;            ///< [sizes 2 kEchoes K,V] standard deviations with signs
  Matrix<Real> squares;      ///< [K,V] sum of Z^2, of the size that has most of it
};

/// Inputs, carried state and output of one block. K and V columns are padded with zeros to
/// multiples of 16. q is without the scale of the output.
template <class Real>
struct BoundBlockOf {
  int tokens;  ///< n, 1 ... kBoundTokens
  int K;
  int V;
  Matrix<Real> q;          ///< [n,K]
  Matrix<Real> k;          ///< [n,K]
  Matrix<Real> v;          ///< [n,V]
  Matrix<Real> log_decay;  ///< [n,K]
  Matrix<Real>
      gate_error;       ///< [n,K] |error of the log decay| in units of the gate's roundoff, gamma
  Real* beta;           ///< [n]
  const int* repeated;  ///< [n], equal for tokens whose k, beta and log decay are bitwise equal
  bool prefix_sums;     ///< log decays are summed over the block
  ColumnUnderflow<Real> underflow;
  // Before the block.
  Matrix<Real> S;          ///< [K,V] the exact state
  Matrix<Real> P;          ///< [K,V] the variance of its independent errors
  Matrix<Real> Gamma;      ///< [K,V] its error from gates, which are the same for every column
  bool has_error;          ///< P or Gamma is not 0
  bool watch_echoes;       ///< T is so coarse that they matter
  bool watch_scores;       ///< Q is so coarse that equal entries of a row matter
  EchoesOf<Real>* echoes;  ///< [2] before the block and after it; f64 only, and absent until wanted
  // After the block, only where state_changed.
  bool state_changed;  ///< pads leave the state alone
  Matrix<Real> S_next;
  Matrix<Real> P_next;
  Matrix<Real> Gamma_next;
  Real* largest;  ///< [V] of S^2, P and Gamma^2 together; f32 only
  Real* least;    ///< [V] of P; f32 only
  // Of the block.
  Matrix<Real> o;        ///< [n,V] exact output, without the scale
  Matrix<Real> sigma_o;  ///< [n,V]
};
using BoundBlock = BoundBlockOf<double>;

/// A kernel that has its own form of the state keeps it in the scratch memory from block to block.
struct VarianceKernel {
  /// Bytes of scratch memory, aligned to 64 bytes, for blocks of up to so many tokens.
  long (*scratch_size)(int tokens, int K, int V);
  /// Takes S, P and Gamma over. Absent where they are read from the block.
  void (*load_state)(const BoundBlock& block, void* scratch);
  /// False, and the state is as it was, where numbers of the kernel's type cannot hold the block,
  /// and where `echoes` are absent and wanted.
  bool (*advance)(BoundBlock& block, const BoundFactors& factors, void* scratch);
  /// Writes S, P and Gamma. Absent where `advance` writes S_next, P_next and Gamma_next.
  void (*store_state)(BoundBlock& block, void* scratch);
};

extern const VarianceKernel kVarianceBaseline;
extern const VarianceKernel kVarianceAvx2;
extern const VarianceKernel kVarianceAvx512;
// In f32, for formats that are much coarser.
extern const VarianceKernel kNarrowVarianceBaseline;
extern const VarianceKernel kNarrowVarianceAvx2;
extern const VarianceKernel kNarrowVarianceAvx512;

}  // namespace kda::reference
