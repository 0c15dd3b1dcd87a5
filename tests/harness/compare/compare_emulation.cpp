#include "tests/harness/compare/compare_emulation.hpp"

#include "reference/activated.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kda::harness {
namespace {

using Matrix = std::vector<double>;

std::size_t at(std::int64_t row, std::int64_t cols, std::int64_t col) {
  return static_cast<std::size_t>(row * cols + col);
}

/// One head: the chunk (WY) form with a rounding at every place where a kernel stores an operand.
class HeadKernel {
 public:
  HeadKernel(const Semantics& s, Dtype operands)
      : K_(s.K), V_(s.V), scale_(s.scale), operands_(operands) {}

  /// Advances the state by one chunk and returns o [n,V].
  Matrix chunk(const reference::ActivatedRows& in, std::int64_t n, Matrix& S) const {
    Matrix q = in.q;
    Matrix k = in.k;
    for (double& x : q) x = op(x);
    for (double& x : k) x = op(x);
    Matrix G(in.log_decay);  // since the start of the chunk; f64, as differences follow
    for (std::size_t i = static_cast<std::size_t>(K_); i < G.size(); ++i) {
      G[i] += G[i - static_cast<std::size_t>(K_)];
    }
    const Matrix A = scores(k, k, G, n);
    const Matrix Q = scores(q, k, G, n);
    const Matrix U = solve(A, residual(in, k, G, S, n), in.beta, n);
    Matrix o(at(n, V_, 0));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t v = 0; v < V_; ++v) {
        double sum = 0;
        for (std::int64_t c = 0; c < K_; ++c) {
          sum += op(q[at(i, K_, c)] * std::exp(G[at(i, K_, c)])) * op(S[at(c, V_, v)]);
        }
        for (std::int64_t j = 0; j <= i; ++j) sum += op(Q[at(i, n, j)]) * op(U[at(j, V_, v)]);
        o[at(i, V_, v)] = f32(scale_ * f32(sum));
      }
    }
    advance(k, G, U, n, S);
    return o;
  }

 private:
  double op(double x) const {
    switch (operands_) {
      case Dtype::kBf16: return static_cast<double>(to_float(to_bf16(x)));
      case Dtype::kF16: return static_cast<double>(to_float(to_f16(x)));
      default: return f32(x);
    }
  }
  static double f32(double x) { return static_cast<double>(static_cast<float>(x)); }

  /// a_i . (k_j decayed from j to i), operands anchored at the first row of the 16 rows of i.
  Matrix scores(const Matrix& a, const Matrix& k, const Matrix& G, std::int64_t n) const {
    Matrix M(at(n, n, 0));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        const std::int64_t anchor = std::max(j, i / 16 * 16);
        double sum = 0;
        for (std::int64_t c = 0; c < K_; ++c) {
          const double at_anchor = G[at(anchor, K_, c)];
          sum += op(a[at(i, K_, c)] * std::exp(G[at(i, K_, c)] - at_anchor)) *
                 op(k[at(j, K_, c)] * std::exp(at_anchor - G[at(j, K_, c)]));
        }
        M[at(i, n, j)] = f32(sum);
      }
    }
    return M;
  }

  /// v minus what the state before the chunk already says about k.
  Matrix residual(const reference::ActivatedRows& in, const Matrix& k, const Matrix& G,
                  const Matrix& S, std::int64_t n) const {
    Matrix R(at(n, V_, 0));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t v = 0; v < V_; ++v) {
        double sum = 0;
        for (std::int64_t c = 0; c < K_; ++c) {
          sum += op(k[at(i, K_, c)] * std::exp(G[at(i, K_, c)])) * op(S[at(c, V_, v)]);
        }
        R[at(i, V_, v)] = op(in.v[at(i, V_, v)] - f32(sum));
      }
    }
    return R;
  }

  /// U = (I + beta A)^-1 beta R through the rounded inverse.
  Matrix solve(const Matrix& A, const Matrix& R, const std::vector<double>& beta,
               std::int64_t n) const {
    Matrix T(at(n, n, 0));
    Matrix U(at(n, V_, 0));
    for (std::int64_t i = 0; i < n; ++i) {
      const double b = beta[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j <= i; ++j) {
        double sum = i == j ? 1 : 0;
        for (std::int64_t m = j; m < i; ++m) sum -= A[at(i, n, m)] * T[at(m, n, j)];
        T[at(i, n, j)] = f32(b * sum);
      }
      for (std::int64_t v = 0; v < V_; ++v) {
        double sum = 0;
        for (std::int64_t j = 0; j <= i; ++j) sum += op(T[at(i, n, j)]) * R[at(j, V_, v)];
        U[at(i, V_, v)] = f32(sum);
      }
    }
    return U;
  }

  void advance(const Matrix& k, const Matrix& G, const Matrix& U, std::int64_t n, Matrix& S) const {
    for (std::int64_t c = 0; c < K_; ++c) {
      const double last = G[at(n - 1, K_, c)];
      for (std::int64_t v = 0; v < V_; ++v) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          sum += op(k[at(j, K_, c)] * std::exp(last - G[at(j, K_, c)])) * op(U[at(j, V_, v)]);
        }
        S[at(c, V_, v)] = f32(f32(std::exp(last)) * S[at(c, V_, v)] + f32(sum));
      }
    }
  }

  std::int64_t K_;
  std::int64_t V_;
  double scale_;
  Dtype operands_;
};

}  // namespace

Outputs chunk_kernel(const Problem& problem, const Semantics& s, Dtype operands) {
  const HeadKernel kernel(s, operands);
  const reference::ActivatedReader reader(problem, s);
  Outputs out{Tensor(problem.v.dtype, s.o_shape()), {}, {}};
  if (s.final_state) out.final_state = Tensor(Dtype::kF32, s.state_shape(s.N()));
  if (s.chunk_states) out.h = Tensor(Dtype::kF32, s.state_shape(s.num_chunks));
  reference::ActivatedRows rows;
  for (std::int64_t n = 0; n < s.N(); ++n) {
    const Sequence& sequence = s.sequences[static_cast<std::size_t>(n)];
    for (std::int64_t hv = 0; hv < s.HV; ++hv) {
      Matrix S = reader.initial_state(n, hv);
      for (std::int64_t t = 0; t < sequence.length(); t += s.chunk) {
        if (out.h) {
          reference::store_state(S.data(), sequence.first_chunk + t / s.chunk, hv, s, *out.h);
        }
        const std::int64_t count = std::min(s.chunk, sequence.length() - t);
        reader.read(sequence, hv, t, count, rows);
        const Matrix o = kernel.chunk(rows, count, S);
        const std::int64_t first = (sequence.b * s.T + sequence.begin + t) * s.HV + hv;
        for (std::int64_t i = 0; i < count * s.V; ++i) {
          out.o.store((first + i / s.V * s.HV) * s.V + i % s.V, o[static_cast<std::size_t>(i)]);
        }
      }
      if (out.final_state) reference::store_state(S.data(), n, hv, s, *out.final_state);
    }
  }
  return out;
}

}  // namespace kda::harness
