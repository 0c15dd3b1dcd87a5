#pragma once

// One block of tokens of the variance bound, compiled once per instruction set (see
// variance_block.cpp). Plain data and function pointers only, for the reason that
// fast_kernel.hpp gives.

namespace kda::reference {

inline constexpr int kBoundTokens = 128;  ///< most tokens of a block
inline constexpr int kScoreRows = 16;     ///< rows of scores that are computed together

/// RMS of the relative rounding error over u when mantissas are log-uniform: the error is uniform
/// on +-u 2^e and 2^e / |x| goes from 1/2 to 1, so sqrt(1/3) sqrt(3 / (8 ln 2)).
inline constexpr double kKappa = 0.4248;

/// A row-major matrix; rows are `pitch` apart.
struct MatrixRef {
  double* data;
  long pitch;
};

/// Formats as the formulas of docs/bound.md use them. rho = (0.4248 u)^2 is the variance of one
/// rounding of 1.
struct BoundFactors {
  double rho_operands;
  double rho_triangle;
  double rho_solve;
  double rho_accumulation;
  double rho_state;         ///< of one rounding of the state at its storage; 0 = none of its own
  double rho_output;        ///< of o, with the roundings of the sum that makes it
  double gate_unit;         ///< u of the gate
  double state_stall;       ///< u of a state stored every token, else 0
  double sum_roundings;     ///< n_a: roundings of a sum over K
  double underflow;         ///< eta^2 / 3 of the operands
  double state_underflow;   ///< eta^2 / 3 of the state
  double output_underflow;  ///< eta^2 / 3 of the output
  double sum_underflow;     ///< eta^2 of the sums
  double scale;             ///< of o
};

/// Inputs, carried state and output of one block. K and V columns are padded with zeros to
/// multiples of 8. q is without the scale of the output.
struct BoundBlock {
  int tokens;  ///< n, 1 ... kBoundTokens
  int K;
  int V;
  MatrixRef q;           ///< [n,K]
  MatrixRef k;           ///< [n,K]
  MatrixRef v;           ///< [n,V]
  MatrixRef log_decay;   ///< [n,K]
  MatrixRef gate_error;  ///< [n,K] |error of the log decay| in units of the gate's roundoff, gamma
  const double* beta;    ///< [n]
  const int* repeated;   ///< [n], equal for tokens whose k, beta and log decay are bitwise equal
  bool prefix_sums;      ///< log decays are summed over the block
  MatrixRef S;           ///< [K,V] the exact state: before the block, then after it
  MatrixRef P;           ///< [K,V] the variance of its independent errors, likewise
  MatrixRef Gamma;    ///< [K,V] its error from gates, which are the same for every column, likewise
  bool has_error;     ///< P or Gamma is not 0; set when the block adds to them
  MatrixRef o;        ///< [n,V] exact output, with the scale
  MatrixRef sigma_o;  ///< [n,V]
};

struct VarianceKernel {
  /// Doubles that `advance` needs for scratch, aligned to 64 bytes.
  long (*scratch_size)(int tokens, int K, int V);
  void (*advance)(BoundBlock& block, const BoundFactors& factors, double* scratch);
};

extern const VarianceKernel kVarianceBaseline;
extern const VarianceKernel kVarianceAvx2;
extern const VarianceKernel kVarianceAvx512;

}  // namespace kda::reference
