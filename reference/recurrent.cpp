#include "reference/recurrent.hpp"

#include "reference/gate.hpp"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace kda::reference {
namespace {

/// i_k and i_v below index std::vector, hence std::size_t; everything that addresses a tensor is
/// std::int64_t.
std::int64_t offset(const TensorView& x, std::int64_t i0, std::int64_t i1, std::int64_t i2,
                    std::size_t i3) {
  return i0 * x.strides[0] + i1 * x.strides[1] + i2 * x.strides[2] +
         static_cast<std::int64_t>(i3) * x.strides[3];
}

template <class Real>
using Row = std::vector<Real>;

/// What the recurrence reads at one token of one value head, after the activations.
template <class Real>
struct Token {
  Row<Real> q;      ///< [K]
  Row<Real> k;      ///< [K]
  Row<Real> v;      ///< [V]
  Row<Real> decay;  ///< [K], exp(g)
  Real beta = 0;
};

template <class Real>
class Recurrence {
 public:
  Recurrence(const Problem& problem, const Semantics& semantics, Dtype o_dtype, Dtype state_dtype)
      : p_(problem),
        s_(semantics),
        K_(static_cast<std::size_t>(semantics.K)),
        V_(static_cast<std::size_t>(semantics.V)) {
    out_.o = Tensor(o_dtype, s_.o_shape());
    if (s_.final_state) out_.final_state = Tensor(state_dtype, s_.state_shape(s_.N()));
    if (s_.chunk_states) out_.h = Tensor(state_dtype, s_.state_shape(s_.num_chunks));
    if (p_.A_log) A_log_ = to_f64(*p_.A_log);
    if (p_.dt_bias) dt_bias_ = to_f64(*p_.dt_bias);
  }

  Outputs run() && {
    for (std::int64_t n = 0; n < s_.N(); ++n) {
      for (std::int64_t hv = 0; hv < s_.HV; ++hv) run_head(n, hv);
    }
    return std::move(out_);
  }

 private:
  void run_head(std::int64_t n, std::int64_t hv) {
    const Sequence& sequence = s_.sequences[static_cast<std::size_t>(n)];
    std::vector<Real> S = initial_state(n, hv);
    for (std::int64_t t = 0; t < sequence.length(); ++t) {
      if (out_.h && t % s_.chunk == 0) {
        store_state(*out_.h, sequence.first_chunk + t / s_.chunk, hv, S);
      }
      const std::int64_t row = sequence.begin + t;
      store_row(sequence.b, row, hv, advance(token(sequence.b, row, hv), S));
    }
    if (out_.final_state) store_state(*out_.final_state, n, hv, S);
  }

  /// The recurrence itself: one token. S is [K,V], row-major; returns o.
  Row<Real> advance(const Token<Real>& x, std::vector<Real>& S) const {
    Row<Real> u(V_, 0);
    Row<Real> o(V_, 0);
    // S <- diag(exp(g)) S
    for (std::size_t k = 0; k < K_; ++k) {
      for (std::size_t v = 0; v < V_; ++v) S[k * V_ + v] *= x.decay[k];
    }
    // u = k^T S
    for (std::size_t k = 0; k < K_; ++k) {
      for (std::size_t v = 0; v < V_; ++v) u[v] += x.k[k] * S[k * V_ + v];
    }
    // S <- S + beta k (v - u)^T
    for (std::size_t k = 0; k < K_; ++k) {
      for (std::size_t v = 0; v < V_; ++v) S[k * V_ + v] += x.beta * x.k[k] * (x.v[v] - u[v]);
    }
    // o = scale q^T S
    for (std::size_t k = 0; k < K_; ++k) {
      for (std::size_t v = 0; v < V_; ++v) o[v] += x.q[k] * S[k * V_ + v];
    }
    for (Real& value : o) value *= static_cast<Real>(s_.scale);
    return o;
  }

  [[nodiscard]] Token<Real> token(std::int64_t b, std::int64_t t, std::int64_t hv) const {
    const std::int64_t h = hv / (s_.HV / s_.H);
    Token<Real> x;
    x.q = row(p_.q, b, t, h, K_);
    x.k = row(p_.k, b, t, h, K_);
    x.v = row(p_.v, b, t, hv, V_);
    x.decay = row(p_.g, b, t, hv, K_);
    if (s_.qk_norm == QkNorm::kL2) {
      normalise(x.q);
      normalise(x.k);
    }
    for (std::size_t k = 0; k < K_; ++k) x.decay[k] = std::exp(log_decay(x.decay[k], hv, k));
    const std::int64_t beta_offset =
        b * p_.beta.strides[0] + t * p_.beta.strides[1] + hv * p_.beta.strides[2];
    x.beta = write_strength(static_cast<Real>(load(p_.beta, beta_offset)), s_.beta);
    return x;
  }

  static Row<Real> row(const TensorView& x, std::int64_t b, std::int64_t t, std::int64_t head,
                       std::size_t size) {
    Row<Real> values(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = static_cast<Real>(load(x, offset(x, b, t, head, i)));
    }
    return values;
  }

  static void normalise(Row<Real>& x) {
    Real sum = 0;
    for (const Real value : x) sum += value * value;
    for (Real& value : x) value *= l2_factor(sum);
  }

  /// Natural-log decay of channel k of head hv from the stored g.
  [[nodiscard]] Real log_decay(Real g, std::int64_t hv, std::size_t k) const {
    if (s_.gate == GateForm::kLogDecay) return g;
    const auto head = static_cast<std::size_t>(hv);
    const Real bias = dt_bias_.empty() ? Real{0} : static_cast<Real>(dt_bias_[head * K_ + k]);
    const Real A_log = A_log_.empty() ? Real{0} : static_cast<Real>(A_log_[head]);
    if (s_.gate == GateForm::kSoftplus) return softplus_gate(g + bias, A_log);
    return lower_bound_gate(g + bias, A_log, static_cast<Real>(s_.lower_bound));
  }

  [[nodiscard]] std::vector<Real> initial_state(std::int64_t n, std::int64_t hv) const {
    std::vector<Real> S(K_ * V_, 0);
    if (!p_.initial_state) return S;
    for (std::size_t k = 0; k < K_; ++k) {
      for (std::size_t v = 0; v < V_; ++v) {
        const auto [row, column] = stored(k, v);
        const TensorView& x = *p_.initial_state;
        S[k * V_ + v] =
            static_cast<Real>(load(x, offset(x, n, hv, static_cast<std::int64_t>(row), column)));
      }
    }
    return S;
  }

  /// S into slot `i` of a tensor [count,HV,K,V] or [count,HV,V,K].
  void store_state(Tensor& states, std::int64_t i, std::int64_t hv, const std::vector<Real>& S) {
    const TensorView x = states.view();
    for (std::size_t k = 0; k < K_; ++k) {
      for (std::size_t v = 0; v < V_; ++v) {
        const auto [row, column] = stored(k, v);
        states.store(offset(x, i, hv, static_cast<std::int64_t>(row), column),
                     static_cast<double>(S[k * V_ + v]));
      }
    }
  }

  void store_row(std::int64_t b, std::int64_t t, std::int64_t hv, const Row<Real>& o) {
    for (std::size_t v = 0; v < V_; ++v) {
      out_.o.store(((b * s_.T + t) * s_.HV + hv) * s_.V + static_cast<std::int64_t>(v),
                   static_cast<double>(o[v]));
    }
  }

  struct Place {
    std::size_t row;
    std::size_t column;
  };
  /// Where a state tensor keeps element (k, v).
  [[nodiscard]] Place stored(std::size_t k, std::size_t v) const {
    return s_.state_layout == StateLayout::kKV ? Place{k, v} : Place{v, k};
  }

  const Problem& p_;
  const Semantics& s_;
  std::size_t K_;
  std::size_t V_;
  std::vector<double> A_log_;    ///< [HV], empty = 0
  std::vector<double> dt_bias_;  ///< [HV,K], empty = 0
  Outputs out_;
};

}  // namespace

Outputs recurrent(const Problem& problem, const Semantics& semantics) {
  return Recurrence<double>(problem, semantics, Dtype::kF64, Dtype::kF64).run();
}

Outputs recurrent_f32(const Problem& problem, const Semantics& semantics) {
  return Recurrence<float>(problem, semantics, problem.v.dtype, Dtype::kF32).run();
}

Outputs recurrent_long_double(const Problem& problem, const Semantics& semantics) {
  return Recurrence<long double>(problem, semantics, Dtype::kF64, Dtype::kF64).run();
}

}  // namespace kda::reference
