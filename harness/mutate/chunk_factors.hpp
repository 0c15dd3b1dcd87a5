#pragma once

#include "harness/mutate/chunk_loop.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

// Pieces of the chunked form with a switchable mistake: plain dense matrices, no library, so that
// each mistake is one visible branch.

namespace kda::harness::mutate {

/// Dense, row-major.
template <class Real>
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<Real> data;

  Matrix() = default;
  Matrix(std::int64_t r, std::int64_t c)
      : rows(r), cols(c), data(static_cast<std::size_t>(r * c), 0) {}
  Real& operator()(std::int64_t i, std::int64_t j) {
    return data[static_cast<std::size_t>(i * cols + j)];
  }
  const Real& operator()(std::int64_t i, std::int64_t j) const {
    return data[static_cast<std::size_t>(i * cols + j)];
  }
};

template <class Real>
Matrix<Real> product(const Matrix<Real>& a, const Matrix<Real>& b) {
  Matrix<Real> c(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t m = 0; m < a.cols; ++m) {
      const Real x = a(i, m);
      if (x == 0) continue;  // triangles
      for (std::int64_t j = 0; j < b.cols; ++j) c(i, j) += x * b(m, j);
    }
  }
  return c;
}

template <class Real>
Matrix<Real> transposed(const Matrix<Real>& a) {
  Matrix<Real> c(a.cols, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) c(j, i) = a(i, j);
  }
  return c;
}

template <class Real>
void add(Matrix<Real>& a, const Matrix<Real>& b) {
  for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] += b.data[i];
}
template <class Real>
void subtract(Matrix<Real>& a, const Matrix<Real>& b) {
  for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] -= b.data[i];
}

/// Inputs of one chunk of one head.
template <class Real>
struct ChunkRows {
  Matrix<Real> q;
  Matrix<Real> k;
  Matrix<Real> g;
  Matrix<Real> v;
  std::vector<Real> beta;

  ChunkRows(const Activated& a, std::int64_t begin, std::int64_t tokens, std::int64_t hv)
      : q(tokens, a.semantics.K),
        k(tokens, a.semantics.K),
        g(tokens, a.semantics.K),
        v(tokens, a.semantics.V),
        beta(static_cast<std::size_t>(tokens)) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::size_t at_k = a.at_k(begin + i, hv);
      for (std::int64_t c = 0; c < q.cols; ++c) {
        q(i, c) = static_cast<Real>(a.q[at_k + static_cast<std::size_t>(c)]);
        k(i, c) = static_cast<Real>(a.k[at_k + static_cast<std::size_t>(c)]);
        g(i, c) = static_cast<Real>(a.g[at_k + static_cast<std::size_t>(c)]);
      }
      for (std::int64_t c = 0; c < v.cols; ++c) {
        v(i, c) = static_cast<Real>(a.v[a.at_v(begin + i, hv) + static_cast<std::size_t>(c)]);
      }
      beta[static_cast<std::size_t>(i)] = static_cast<Real>(a.beta[a.at(begin + i, hv)]);
    }
  }
};

/// exp of sums of log decays of a chunk. The honest form multiplies decays, so that neither -inf
/// nor a long sum loses anything; the faulty ones work on the running sum G.
template <class Real>
class Decays {
 public:
  Decays(const ChunkRows<Real>& x, ChunkFault fault);

  /// exp(G_i), what row i of k and q meets of the state before the chunk.
  [[nodiscard]] Real from_start(std::int64_t i, std::int64_t c) const { return start_(i, c); }
  /// exp(G_i - G_j), i >= j, by the product from the one for i - 1.
  [[nodiscard]] Real between(std::int64_t i, std::int64_t j, std::int64_t c, Real last) const;
  /// exp(G_n - G_j).
  [[nodiscard]] Real to_end(std::int64_t j, std::int64_t c) const { return end_(j, c); }
  /// The factors of exp(G_i - G_j) in the factored forms.
  [[nodiscard]] Real up(std::int64_t i, std::int64_t c) const {
    return static_cast<Real>(up_(i, c));
  }
  [[nodiscard]] Real down(std::int64_t j, std::int64_t c) const {
    return static_cast<Real>(down_(j, c));
  }
  /// exp(G_n) by channel.
  [[nodiscard]] std::vector<Real> through() const;

 private:
  [[nodiscard]] bool is_factored() const;
  void multiply_up(const ChunkRows<Real>& x);
  void factor(const ChunkRows<Real>& x);

  ChunkFault fault_;
  Matrix<Real> step_;   ///< exp(g)
  Matrix<Real> start_;  ///< exp(G)
  Matrix<Real> end_;    ///< exp(G_n - G)
  Matrix<float> up_;    ///< exp(G_i - anchor), of the factored forms
  Matrix<float> down_;  ///< exp(anchor - G_j)
};

template <class Real>
struct Factors {
  Matrix<Real> T;
  Matrix<Real> Q;
  Matrix<Real> q;
  Matrix<Real> q_decayed;
  Matrix<Real> k_decayed;
};

template <class Real>
[[nodiscard]] Factors<Real> factorise(const ChunkRows<Real>& x, const Decays<Real>& decays,
                                      ChunkFault fault);

/// (D_n k), what the rows write into the state after the chunk.
template <class Real>
[[nodiscard]] Matrix<Real> keys_at_end(const ChunkRows<Real>& x, const Decays<Real>& decays,
                                       ChunkFault fault);

extern template class Decays<float>;
extern template class Decays<double>;
extern template Factors<float> factorise(const ChunkRows<float>&, const Decays<float>&, ChunkFault);
extern template Factors<double> factorise(const ChunkRows<double>&, const Decays<double>&,
                                          ChunkFault);
extern template Matrix<float> keys_at_end(const ChunkRows<float>&, const Decays<float>&,
                                          ChunkFault);
extern template Matrix<double> keys_at_end(const ChunkRows<double>&, const Decays<double>&,
                                           ChunkFault);

}  // namespace kda::harness::mutate
