#pragma once

// Scratch memory of the variance bound, compiled once per instruction set like what uses it.

#include "reference/variance_isa.hpp"

namespace kda::reference::KDA_ISA {

/// Scratch of one block with n tokens. X2 is X squared by element.
struct Work {
  Exact exact;
  Transition transition;
  MatrixRef T2;        ///< [n,n]
  MatrixRef A_errors;  ///< [n,n] variance of the products of A with U, by U^2
  MatrixRef Q2;        ///< [n,n]
  MatrixRef mu2_T2;    ///< [n,n]
  GateSums gates;
  MatrixRef A_gate, Q_gate;  ///< [n,n] squared gate errors of A_ij and Q_ij
  MatrixRef Q_errors;        ///< [n,n] variance of the products of Q with U, by U^2
  MatrixRef squares;         ///< [n,K] of a factor
  MatrixRef read_errors;     ///< [2n,K] variance of the products of reads with the state, by S^2
  MatrixRef Wt2;             ///< [K,n]
  MatrixRef W_gate_errors;   ///< [K,n]
  MatrixRef U2, R2;          ///< [n,V]
  MatrixRef state_part;      ///< [2n,V] what pi and omega get from the state before the block
  MatrixRef right;           ///< [n,V] right side of a product
  MatrixRef zeta;            ///< [n,V] variance of U
  MatrixRef small;           ///< [n,V] sum of U_j^2 for j <= i, then eta^2 terms
  MatrixRef S2;              ///< [K,V] second moment of what is held for the state
  MatrixRef doubt;           ///< [K,V] P + Gamma^2, and Z^2 of echoes
  MatrixRef S2_keys;         ///< [K,V] S2 with what R^2 gets from doubt
  MatrixRef carried;         ///< [K,V] P and what all tokens read of the state alike
  MatrixRef written;         ///< [K,V] (W^2)^T . U^2
  MatrixRef gate_written;    ///< [K,V]
  MatrixRef F;               ///< [K,V] what the block adds to P
  MatrixRef echo_writes;     ///< [n,V] error of U that one echo makes, with its sign
  MatrixRef echo_reads;      ///< [n,V] what o reads of it; scratch
  MatrixRef echo_R;          ///< [n,V] R of blocks of one size
  MatrixRef echo_sum;        ///< [n,V] variance of o by echoes, for that size
  MatrixRef echo_most;       ///< [n,V] and for the size that has most of it
  Real* cef;                 ///< [K]
  Real* channels;            ///< [K] scratch
  Real* T_sum;               ///< [n] sum_j T_ij^2
  Real* Q_sum;               ///< [n] sum_j Q_ij^2
  Real* k_sum;               ///< [n] km: largest |k_j|^2 of the tokens up to i
  Real* q_sum;               ///< [n] |q_i|^2
  Real* S_sum;               ///< [V] s0: sum_c S_cv^2
  Real* columns;             ///< [V] scratch
};

/// Hands out parts of the scratch memory; without any it only counts.
class Arena {
 public:
  explicit Arena(Real* data) : data_(data) {}
  Real* vector(long size) {
    Real* at = data_ == nullptr ? nullptr : data_ + used_;
    used_ += up_to(size, kPadding);
    return at;
  }
  /// A pitch of whole kilobytes would send all rows to the same sets of the cache.
  MatrixRef matrix(long rows, long columns) {
    const long pitch = up_to(columns, kPadding) + kPadding;
    return {vector(rows * pitch), pitch};
  }
  [[nodiscard]] long used() const { return used_; }

 private:
  Real* data_;
  long used_ = 0;
};

inline Work make_work(Arena& arena, long n, long K, long V) {
  Work w{};
  const long N = up_to(n, kScoreRows);
  Scores& scores = w.exact.scores;
  MatrixRef* by_pair[] = {&scores.A,  &scores.A_terms, &scores.Q,   &scores.Q_terms,
                          &w.exact.T, &w.T2,           &w.A_errors, &w.Q2,
                          &w.mu2_T2,  &w.A_gate,       &w.Q_gate,   &w.Q_errors};
  for (MatrixRef* x : by_pair) *x = arena.matrix(n, N);
  MatrixRef* by_channel[] = {&scores.E,    &scores.decays, &w.gates.linear,  &w.gates.prefix,
                             &w.gates.phi, &w.squares,     &w.transition.TK, &w.transition.Psi2};
  for (MatrixRef* x : by_channel) *x = arena.matrix(n, K);
  MatrixRef* reads[] = {&w.exact.reads, &w.read_errors};
  for (MatrixRef* x : reads) *x = arena.matrix(2 * n, K);
  scores.work = arena.matrix(4L * kScoreRows, K);
  MatrixRef* by_token[] = {&scores.Wt, &scores.squares, &w.Wt2, &w.W_gate_errors};
  for (MatrixRef* x : by_token) *x = arena.matrix(K, N);
  MatrixRef* by_column[] = {&w.exact.R, &w.exact.U, &w.U2, &w.R2, &w.right, &w.zeta, &w.small};
  for (MatrixRef* x : by_column) *x = arena.matrix(n, V);
  w.exact.from_state = arena.matrix(2 * n, V);
  w.state_part = arena.matrix(2 * n, V);
  MatrixRef* echoes[] = {&w.echo_writes, &w.echo_reads, &w.echo_R, &w.echo_sum, &w.echo_most};
  for (MatrixRef* x : echoes) *x = arena.matrix(n, V);
  MatrixRef* states[] = {&w.exact.writes, &w.S2,      &w.S2_keys,      &w.doubt,
                         &w.carried,      &w.written, &w.gate_written, &w.F};
  for (MatrixRef* x : states) *x = arena.matrix(K, V);
  w.transition.M2 = arena.matrix(K, K);
  w.transition.M2_diagonal = arena.vector(K);
  w.transition.Phi2_diagonal = arena.vector(K);
  Real** tokens[] = {&w.T_sum, &w.Q_sum, &w.k_sum, &w.q_sum};
  for (Real** x : tokens) *x = arena.vector(n);
  w.cef = arena.vector(K);
  w.channels = arena.vector(K);
  w.S_sum = arena.vector(V);
  w.columns = arena.vector(V);
  return w;
}

}  // namespace kda::reference::KDA_ISA
