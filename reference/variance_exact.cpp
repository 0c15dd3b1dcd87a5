#include "reference/variance_isa.hpp"
#include "reference/vector.hpp"

// The chunked form of the recurrence, for the variance bound: it shares most of its matrices. Must
// not include the standard library (see vector.hpp).

namespace kda::reference::KDA_ISA {
namespace {

Real* row(MatrixRef x, int i) { return x.data + i * x.pitch; }
MatrixRef from_row(MatrixRef x, int i) { return {row(x, i), x.pitch}; }

/// T row by row: inversei = beta_i, inversej = -beta_i sum_m A_im T_mj.
void invert(const BoundBlock& block, MatrixRef A, MatrixRef T) {
  const int columns = (block.tokens + kScoreRows - 1) / kScoreRows * kScoreRows;
  for (int i = 0; i < block.tokens; ++i) {
    Real* inverse = row(T, i);
    for (int j = 0; j < columns; ++j) inverse[j] = 0;
    for (int m = 0; m < i; ++m) {
      const Real factor = -block.beta[i] * row(A, i)[m];
      for (int j = 0; j <= m; j += kLanes) {
        store(load(inverse + j) + load(row(T, m) + j) * factor, inverse + j);
      }
    }
    inverse[i] = block.beta[i];
  }
}

void decay_reads(const BoundBlock& block, const Exact& exact) {
  for (int i = 0; i < block.tokens; ++i) {
    for (int c = 0; c < block.K; c += kLanes) {
      const Vec E = load(row(exact.scores.E, i) + c);
      store(load(row(block.k, i) + c) * E, row(exact.reads, i) + c);
      store(load(row(block.q, i) + c) * E, row(exact.reads, block.tokens + i) + c);
    }
  }
}

}  // namespace

void compute_exact(const BoundBlock& block, const Exact& exact) {
  const int n = block.tokens;
  compute_scores(block, exact.scores);
  invert(block, exact.scores.A, exact.T);
  decay_reads(block, exact);

  product(rows_of(exact.reads), block.S, {2 * n, block.K, block.V}, Shape::kFull, Store::kSet,
          exact.from_state);
  for (int i = 0; i < n; ++i) {
    for (int v = 0; v < block.V; v += kLanes) {
      store(load(row(block.v, i) + v) - load(row(exact.from_state, i) + v), row(exact.R, i) + v);
    }
  }
  product(rows_of(exact.T), exact.R, {n, n, block.V}, Shape::kLower, Store::kSet, exact.U);

  product(rows_of(exact.scores.Q), exact.U, {n, n, block.V}, Shape::kLower, Store::kSet, block.o);
  for (int i = 0; i < n; ++i) {
    for (int v = 0; v < block.V; v += kLanes) {
      const Vec o = load(row(block.o, i) + v) + load(row(exact.from_state, n + i) + v);
      store(o, row(block.o, i) + v);
    }
  }

  product(rows_of(exact.scores.Wt), exact.U, {block.K, n, block.V}, Shape::kFull, Store::kSet,
          exact.writes);
}

void compute_transition(const BoundBlock& block, const Exact& exact, const Transition& out) {
  const int n = block.tokens;
  const int K = block.K;
  product(rows_of(exact.T), exact.reads, {n, n, K}, Shape::kLower, Store::kSet, out.TK);
  product(rows_of(exact.scores.Q), out.TK, {n, n, K}, Shape::kLower, Store::kSet, out.Psi2);
  const MatrixRef qE = from_row(exact.reads, n);
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < K; c += kLanes) {
      const Vec Psi = load(row(qE, i) + c) - load(row(out.Psi2, i) + c);
      store(Psi * Psi, row(out.Psi2, i) + c);
    }
  }
  const Real* decay = row(exact.scores.E, n - 1);
  // One token: M is the product of two vectors, which is never formed.
  if (n > 1) {
    product(rows_of(exact.scores.Wt), out.TK, {K, n, K}, Shape::kFull, Store::kSet, out.M2);
  }
  for (int c = 0; c < K; ++c) {
    const Real M = n > 1 ? row(out.M2, c)[c] : row(exact.scores.Wt, c)[0] * row(out.TK, 0)[c];
    out.M2_diagonal[c] = M * M;
    out.Phi2_diagonal[c] = (decay[c] - M) * (decay[c] - M);
    if (n == 1) continue;
    for (int d = 0; d < K; d += kLanes) {
      const Vec x = load(row(out.M2, c) + d);
      store(x * x, row(out.M2, c) + d);
    }
    row(out.M2, c)[c] = 0;
  }
}

}  // namespace kda::reference::KDA_ISA
