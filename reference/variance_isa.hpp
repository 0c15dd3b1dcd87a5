#pragma once

// Parts of the variance bound that are compiled once per instruction set and type of number
// KDA_REAL, each time in a namespace of its own: KDA_ISA is baseline, avx2 or avx512 in f64,
// narrow_baseline and so on in f32.

#include "reference/variance_kernel.hpp"

namespace kda::reference::KDA_ISA {

using Real = KDA_REAL;
using MatrixRef = Matrix<Real>;
using BoundBlock = BoundBlockOf<Real>;
using BoundFactors = BoundFactorsOf<Real>;
using Echoes = EchoesOf<Real>;
inline constexpr int kPadding = 64 / sizeof(Real);  ///< columns of a cache line

inline long up_to(long x, long multiple) { return (x + multiple - 1) / multiple * multiple; }

/// A matrix of a product as its left side reads it: element (i, j) at data[i * row + j * column].
struct LeftSide {
  const Real* data;
  long row;
  long column;
};

inline LeftSide rows_of(MatrixRef x) { return {x.data, x.pitch, 1}; }
inline LeftSide transposed(MatrixRef x) { return {x.data, 1, x.pitch}; }

/// Extents of a product [m,k] . [k,n]. Whole multiples of kPadding columns are computed, which must
/// exist on the right side and in the result.
struct Extents {
  int m;
  int k;
  int n;
};

enum class Shape { kFull, kLower };  ///< kLower: the left side is lower triangular
enum class Store { kSet, kAdd };

/// out = left . right, or out += left . right.
void product(LeftSide left, MatrixRef right, Extents extents, Shape shape, Store mode,
             MatrixRef out);

/// Products of keys and queries with decayed keys. Pitches of [n,n] matrices cover n up to a
/// multiple of kScoreRows.
struct Scores {
  MatrixRef A;        ///< [n,n] A_ij = sum_c k_ic k_jc exp(G_ic - G_jc), j < i, else 0
  MatrixRef A_terms;  ///< [n,n] the same sum of squared terms
  MatrixRef Q;        ///< [n,n] Q_ij = sum_c q_ic k_jc exp(G_ic - G_jc), j <= i, else 0
  MatrixRef Q_terms;  ///< [n,n] the same sum of squared terms
  MatrixRef decays;   ///< [n,K] exp(g)
  MatrixRef E;        ///< [n,K] exp(G): decay from the start of the block
  MatrixRef Wt;       ///< [K,n] column j: k_j decayed to the end of the block
  MatrixRef work;     ///< [4 kScoreRows, K] and
  MatrixRef squares;  ///< [K,n] scratch
};

/// Fills `scores`. No exponent is ever positive: rows of 16 tokens meet the keys before them at the
/// border between both, each decayed to it by products of decays.
void compute_scores(const BoundBlock& block, const Scores& scores);

/// Errors of log decays from the start of the block to a token, in units of the gate's roundoff.
struct GateSums {
  MatrixRef linear;  ///< [n,K] sum of the errors that may all have one sign: of single gates, and
                     ///< of roundings of prefix sums that are alike
  MatrixRef prefix;  ///< [n,K] variance of the other roundings of prefix sums; 0 without any
  MatrixRef phi;     ///< [n,K] both: linear + sqrt(prefix)
};

/// Fills `sums`. `unit` is the roundoff of the gate.
void compute_gate_sums(const BoundBlock& block, Real unit, const GateSums& sums);

/// sum_c (k_ic k_jc exp(G_ic - G_jc))^2 times the squared error of G_ic - G_jc into A [n,n] for
/// j < i, and the same of q_i into Q. `row` [K] is scratch.
void compute_gate_scores(const BoundBlock& block, MatrixRef decays, const GateSums& sums,
                         MatrixRef A, MatrixRef Q, Real* row);

/// The exact tensors of a block, chunked form. Everything lies in the caller's scratch.
struct Exact {
  Scores scores;
  MatrixRef T;           ///< [n,n] (I + diag(beta) A)^-1 diag(beta), lower triangular
  MatrixRef reads;       ///< [2n,K] k E, then q E: what meets the state before the block
  MatrixRef from_state;  ///< [2n,V] reads . S
  MatrixRef R;           ///< [n,V] v - (k E) . S
  MatrixRef U;           ///< [n,V] T . R, what the tokens write
  MatrixRef writes;      ///< [K,V] W^T . U, what the block adds to its decayed state
};

/// Fills `exact` and block.o; leaves the block's state as it is.
void compute_exact(const BoundBlock& block, const Exact& exact);

/// What errors of the state before the block pass through.
struct Transition {
  MatrixRef TK;    ///< [n,K] T . (k E)
  MatrixRef Psi2;  ///< [n,K] (q E - Q . TK)^2: what o really reads of the state before the block
  MatrixRef M2;    ///< [K,K] (W^T . TK)^2 with zeros on its diagonal: what the tokens write of what
                   ///< they read; for n = 1 only the diagonals below
  Real* M2_diagonal;    ///< [K] that diagonal
  Real* Phi2_diagonal;  ///< [K] diagonal of (diag(E_n) - W^T . TK)^2, which is M2 elsewhere
};

void compute_transition(const BoundBlock& block, const Exact& exact, const Transition& out);

struct Work;

/// Whether T holds the same numbers again and again, to what a rounding of this variance leaves.
[[nodiscard]] bool repeats(MatrixRef T, int tokens, Real rho);
/// Fills block.echoes[1] but for its matrices. False where there are none before the block and none
/// in it.
[[nodiscard]] bool find_echoes(BoundBlock& block, const BoundFactors& factors, MatrixRef T);
/// Adds what o reads of the echoes to `omega` [n,V], and carries them to the end of the block.
void advance_echoes(BoundBlock& block, const BoundFactors& factors, const Work& work,
                    MatrixRef omega);
/// Adds to `omega` what entries of a row of Q that round alike cost more than others.
void add_repeated_scores(BoundBlock& block, const BoundFactors& factors, const Work& work,
                         MatrixRef omega);
/// Once P_next is there, to which it adds what the echoes leave that end.
void end_echoes(BoundBlock& block, const BoundFactors& factors, const Work& work);

/// Numbers that `advance` needs for scratch, aligned to 64 bytes.
long scratch_size(int tokens, int K, int V);

/// The bound over one block. False where KDA_REAL could not hold it, and where echoes are absent
/// and wanted: the block is then useless.
[[nodiscard]] bool advance(BoundBlock& block, const BoundFactors& factors, Real* scratch);

}  // namespace kda::reference::KDA_ISA
