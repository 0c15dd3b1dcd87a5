#include "reference/variance_work.hpp"
#include "reference/vector.hpp"

// The variance bound of one block of tokens: the chunked form once more with every matrix squared
// by element. The letters are those of docs/bound.md. Compiled once per instruction set with
// KDA_ISA (namespace) and KDA_VARIANCE_KERNEL (name of the table). Must not include the standard
// library (see vector.hpp).

namespace kda::reference {
namespace KDA_ISA {
namespace {

constexpr double kNegligible = 0.01;  ///< share of a variance

double square(double x) { return x * x; }
double larger(double x, double y) { return x > y ? x : y; }
double* row(MatrixRef x, int i) { return x.data + i * x.pitch; }
MatrixRef from_row(MatrixRef x, int i) { return {row(x, i), x.pitch}; }

Vec root(Vec x) {
  double lanes[kLanes];  // an array, which the compiler makes one instruction of
  store(x, lanes);
  for (double& lane : lanes) lane = __builtin_sqrt(lane);
  return load(lanes);
}

Vec magnitude(Vec x) { return x < 0 ? -x : x; }

/// Applies `f` to the vectors of rows of matrices with these extents.
template <class F>
void each(int rows, int columns, F f) {
  for (int i = 0; i < rows; ++i) {
    for (int c = 0; c < columns; c += kLanes) f(i, c);
  }
}

Vec get(MatrixRef x, int i, int c) { return load(row(x, i) + c); }
void put(Vec value, MatrixRef x, int i, int c) { store(value, row(x, i) + c); }

class BlockBound {
 public:
  BlockBound(BoundBlock& block, const BoundFactors& factors, const Work& work)
      : b_(block),
        f_(factors),
        w_(work),
        n_(block.tokens),
        K_(block.K),
        V_(block.V),
        sums_(factors.sum_roundings * factors.rho_accumulation) {}

  void advance() {
    compute_exact(b_, f_.scale, w_.exact);
    compute_transition(b_, w_.exact, w_.transition);
    gate_errors();
    square_pairs();
    square_rows();
    if (b_.has_error) add_doubts();
    reads_of_state();
    solve_variance();
    output_variance();
    state_variance();
  }

 private:
  /// phi and cef, and what gates do to the scores.
  void gate_errors() {
    for (int c = 0; c < K_; c += kLanes) {
      Vec sum{};
      Vec squares{};
      Vec cef{};
      for (int i = 0; i < n_; ++i) {
        sum += get(b_.gate_error, i, c);
        if (b_.prefix_sums) squares += sum * sum * square(kKappa);
        put(sum, w_.gates.linear, i, c);
        put(squares, w_.gates.prefix, i, c);
        put(sum + root(squares), w_.phi, i, c);
        const Vec decay = get(w_.exact.scores.decays, i, c);
        cef = cef * decay * decay + 1.0;
      }
      store(cef, w_.cef + c);
    }
    weigh_gates();
    if (!gates_matter_) return;
    compute_gate_scores(b_, w_.exact.scores.decays, w_.gates, w_.A_gate, w_.Q_gate, w_.channels);
  }

  /// Beside 16-bit operands, errors of gates inside the block and of the sums are next to nothing.
  /// Then an upper limit takes their place, at most kNegligible of what it is added to, instead of
  /// their products.
  void weigh_gates() {
    double phi = 0;
    double cef = 0;
    for (int c = 0; c < K_; ++c) {
      phi = larger(phi, row(w_.phi, n_ - 1)[c]);
      cef = larger(cef, w_.cef[c]);
    }
    const double rounding = 2 * f_.rho_operands + sums_;
    gate_limit_ = 2 * square(f_.gate_unit * phi);
    gates_matter_ = rounding == 0 || !(gate_limit_ <= kNegligible * rounding);
    // Z, the variance of what is written, holds U^2 twice with this factor.
    written_limit_ = 1 / (2 * rounding);
    sums_matter_ =
        rounding == 0 || !(3 * f_.rho_accumulation * cef * written_limit_ <= kNegligible);
  }

  /// Roundings of a sum over K of terms that were themselves rounded `tokens` times on their way:
  /// three times a token, where the state is kept from token to token.
  [[nodiscard]] double sums_after(int tokens) const {
    return sums_ + 3 * tokens * f_.rho_accumulation;
  }

  /// Roundings of what key `token` reads of the state.
  [[nodiscard]] double key_roundings(int token) const {
    return 3 * f_.rho_operands + sums_after(token + 1);
  }

  void square_pairs() {
    repeats_ = false;
    for (int i = 0; i < n_; ++i) {
      pair_errors(i);
      square_row(i);
      const double mu = repetition(i);
      if (mu > 1) repeats_ = true;
      for (int j = 0; j <= i; ++j) row(w_.mu2_T2, i)[j] = mu * mu * row(w_.T2, i)[j];
      const MatrixRef by_pair[] = {w_.A_errors, w_.Q_errors, w_.T2, w_.Q2, w_.mu2_T2};
      for (const MatrixRef& x : by_pair) {
        for (int j = i + 1; j < up_to(n_, kScoreRows); ++j) row(x, i)[j] = 0;
      }
    }
  }

  /// Rounding of the terms of row i of A and Q, of their sums, and their gates.
  void pair_errors(int i) {
    const Scores& scores = w_.exact.scores;
    for (int j = 0; j <= i; ++j) {
      double terms = 2 * f_.rho_operands + sums_after(i - j);
      double by_gates_k = 0;
      double by_gates_q = 0;
      if (gates_matter_) {
        by_gates_k = 2 * square(f_.gate_unit) * row(w_.A_gate, i)[j];
        by_gates_q = 2 * square(f_.gate_unit) * row(w_.Q_gate, i)[j];
      } else if (j < i) {
        terms += gate_limit_;
      }
      row(w_.A_errors, i)[j] = row(scores.A_terms, i)[j] * terms + by_gates_k +
                               square(row(scores.A, i)[j]) * (f_.rho_solve + sums_);
      row(w_.Q_errors, i)[j] = row(scores.Q_terms, i)[j] * terms + by_gates_q;
    }
  }

  void square_row(int i) {
    double sum_of_t = 0;
    double sum_of_q = 0;
    for (int j = 0; j <= i; ++j) {
      const double T2 = square(row(w_.exact.T, i)[j]);
      const double Q2 = square(row(w_.exact.scores.Q, i)[j]);
      row(w_.T2, i)[j] = T2;
      row(w_.Q2, i)[j] = Q2;
      sum_of_t += T2;
      sum_of_q += Q2;
    }
    w_.T_sum[i] = sum_of_t;
    w_.Q_sum[i] = sum_of_q;
  }

  /// mu: how much the errors of T add up over tokens that repeat token i; 1 without any.
  [[nodiscard]] double repetition(int i) const {
    double sum = 0;
    double squares = 0;
    for (int j = 0; j <= i; ++j) {
      if (b_.repeated[j] != b_.repeated[i]) continue;
      sum += __builtin_fabs(row(w_.exact.T, i)[j]);
      squares += row(w_.T2, i)[j];
    }
    return squares > 0 ? larger(1, sum * sum / squares) : 1;
  }

  /// Squares of what is [n,K], [n,V] and [K,V], and their sums.
  void square_rows() {
    double km = 0;
    for (int i = 0; i < n_; ++i) {
      Vec k_sum{};
      Vec q_sum{};
      for (int c = 0; c < K_; c += kLanes) {
        k_sum += get(b_.k, i, c) * get(b_.k, i, c);
        q_sum += get(b_.q, i, c) * get(b_.q, i, c);
      }
      km = larger(km, sum(k_sum));
      w_.k_sum[i] = km;
      w_.q_sum[i] = sum(q_sum);
    }
    // R^2 is a second moment as well: its part from the state goes the way of the reads of keys.
    const double R_roundings = 2 * f_.rho_triangle + sums_;
    const double R_doubt = key_roundings(0) == 0 ? 0 : R_roundings / key_roundings(0);
    for (int v = 0; v < V_; v += kLanes) {
      Vec sum{};
      for (int i = 0; i < n_; ++i) {
        const Vec U = get(w_.exact.U, i, v);
        const Vec R = get(w_.exact.R, i, v);
        sum += U * U;
        put(U * U, w_.U2, i, v);
        put(R * R, w_.R2, i, v);
        put(sum, w_.small, i, v);
      }
      sum = Vec{};
      for (int c = 0; c < K_; ++c) {
        const Vec S = get(b_.S, c, v);
        const Vec Gamma = get(b_.Gamma, c, v);
        const Vec doubt = get(b_.P, c, v) + Gamma * Gamma;
        const Vec shared = (S * S + doubt) * f_.rho_operands + 2.0 * Gamma * Gamma;
        put(doubt, w_.doubt, c, v);
        sum += S * S + doubt;
        put(S * S + doubt, w_.S2, c, v);
        put(S * S + doubt * (1 + R_doubt), w_.S2_keys, c, v);
        put(shared, w_.shared, c, v);
        put(shared + get(b_.P, c, v), w_.carried, c, v);
      }
      store(sum, w_.S_sum + v);
    }
  }

  /// U^2 becomes a second moment too: what is rounded is what is held, error and all. It matters
  /// where an exact value has vanished and its error has not yet.
  void add_doubts() {
    each(n_, K_, [&](int i, int c) {
      const Vec x = get(w_.transition.TK, i, c);
      put(x * x, w_.squares, i, c);
    });
    product(rows_of(w_.squares), w_.doubt, {n_, K_, V_}, Shape::kFull, Store::kAdd, w_.U2);
  }

  /// (roundings) (x E)^2 . S^2 + 2 u^2 (x E phi)^2 . S^2 + (rounding of the sum) ((x E) . S)^2, for
  /// x = k and q. What all tokens read alike is not in it: it passes through the transition.
  void reads_of_state() {
    each(2 * n_, K_, [&](int i, int c) {
      const int token = i < n_ ? i : i - n_;
      const double rounding =
          i < n_ ? key_roundings(token) : 2 * f_.rho_operands + sums_after(token + 1);
      const Vec read = get(w_.exact.reads, i, c);
      const Vec phi = get(w_.phi, token, c) * f_.gate_unit;
      put(read * read * (rounding + 2.0 * phi * phi), w_.read_errors, i, c);
    });
    each(2 * n_, V_, [&](int i, int v) {
      const Vec read = get(w_.exact.from_state, i, v);
      put(read * read * sums_, w_.state_part, i, v);
    });
    const Extents extents{n_, K_, V_};
    product(rows_of(w_.read_errors), w_.S2_keys, extents, Shape::kFull, Store::kAdd, w_.state_part);
    product(rows_of(from_row(w_.read_errors, n_)), w_.S2, extents, Shape::kFull, Store::kAdd,
            from_row(w_.state_part, n_));
  }

  /// zeta, with pi on the way.
  void solve_variance() {
    const MatrixRef& pi = w_.state_part;
    product(rows_of(w_.A_errors), w_.U2, {n_, n_, V_}, Shape::kLower, Store::kAdd, pi);
    const double eta2 = f_.underflow;
    each(n_, V_, [&](int i, int v) {
      const Vec value = get(b_.v, i, v);
      const Vec small = w_.k_sum[i] + load(w_.S_sum + v) + get(w_.small, i, v) * (2 * w_.k_sum[i]);
      const Vec R_error = get(w_.R2, i, v) * (sums_ + (repeats_ ? 0 : 2 * f_.rho_triangle));
      put(get(pi, i, v) + small * eta2 + value * value * f_.rho_operands + R_error, w_.right, i, v);
    });
    product(rows_of(w_.T2), w_.right, {n_, n_, V_}, Shape::kLower, Store::kSet, w_.zeta);
    if (repeats_) {
      each(n_, V_,
           [&](int i, int v) { put(get(w_.R2, i, v) * (2 * f_.rho_triangle), w_.right, i, v); });
      product(rows_of(w_.mu2_T2), w_.right, {n_, n_, V_}, Shape::kLower, Store::kAdd, w_.zeta);
    }
    for (int v = 0; v < V_; v += kLanes) {
      Vec most{};
      for (int i = 0; i < n_; ++i) {
        const Vec R2 = get(w_.R2, i, v);
        most = R2 > most ? R2 : most;
        const double written = b_.beta[i] == 0 ? 0 : 1;
        put(get(w_.zeta, i, v) + get(w_.U2, i, v) * (2 * f_.rho_operands + sums_) +
                (written + w_.T_sum[i] * most) * eta2,
            w_.zeta, i, v);
      }
    }
  }

  /// omega and sigma of o.
  void output_variance() {
    each(n_, V_, [&](int i, int v) {
      put(get(w_.zeta, i, v) + get(w_.U2, i, v) * (f_.rho_operands + sums_), w_.right, i, v);
    });
    const MatrixRef omega = from_row(w_.state_part, n_);
    product(rows_of(w_.Q2), w_.right, {n_, n_, V_}, Shape::kLower, Store::kAdd, omega);
    product(rows_of(w_.Q_errors), w_.U2, {n_, n_, V_}, Shape::kLower, Store::kAdd, omega);
    product(rows_of(w_.transition.Psi2), w_.carried, {n_, K_, V_}, Shape::kFull, Store::kAdd,
            omega);
    each(n_, V_, [&](int i, int v) {
      const double k_and_q = w_.k_sum[i] + w_.q_sum[i] + 1;
      const Vec small =
          w_.q_sum[i] + load(w_.S_sum + v) + w_.Q_sum[i] + get(w_.small, i, v) * k_and_q;
      const Vec o = get(b_.o, i, v);
      const Vec variance = get(omega, i, v) + small * f_.underflow;
      put(root(variance * square(f_.scale) + o * o * f_.rho_output + f_.output_underflow),
          b_.sigma_o, i, v);
    });
  }

  /// A block that changes nothing: pads only.
  [[nodiscard]] bool is_identity() const {
    for (int i = 0; i < n_; ++i) {
      if (b_.beta[i] != 0) return false;
      for (int c = 0; c < K_; ++c) {
        if (row(b_.log_decay, i)[c] != 0) return false;
      }
    }
    return f_.rho_state == 0;
  }

  /// P, Gamma and S after the block.
  void state_variance() {
    if (is_identity()) return;
    const MatrixRef& W = w_.exact.scores.Wt;
    each(K_, static_cast<int>(up_to(n_, kScoreRows)), [&](int c, int j) {
      const Vec weight = get(W, c, j);
      put(weight * weight, w_.Wt2, c, j);
    });
    gate_errors_of_writes();
    const Extents extents{K_, n_, V_};
    if (sums_matter_) {
      product(rows_of(w_.Wt2), w_.U2, extents, Shape::kFull, Store::kSet, w_.written);
    }
    each(n_, V_, [&](int i, int v) {
      put(get(w_.zeta, i, v) + get(w_.U2, i, v) * (2 * f_.rho_operands + sums_) + f_.sum_underflow,
          w_.right, i, v);
    });
    product(rows_of(w_.Wt2), w_.right, extents, Shape::kFull, Store::kSet, w_.F);
    each(K_, V_, [&](int c, int v) {
      if (!sums_matter_) put(get(w_.F, c, v) * written_limit_, w_.written, c, v);
      put(get(w_.F, c, v) + rounding_of_state(c, v), w_.F, c, v);
    });
    carry_variance();
    next_state();
  }

  /// (W (error of the decay from j to the end))^2 . U^2, in units of sigma^2.
  void gate_errors_of_writes() {
    each(n_, K_, [&](int j, int c) {
      const Vec linear = get(w_.gates.linear, n_ - 1, c) - get(w_.gates.linear, j, c);
      const Vec prefix = get(w_.gates.prefix, n_ - 1, c) - get(w_.gates.prefix, j, c);
      const Vec error = (linear + root(prefix > 0 ? prefix : Vec{})) * f_.gate_unit;
      put(error * error, w_.squares, j, c);
    });
    for (int c = 0; c < K_; ++c) {
      for (int j = 0; j < n_; ++j) {
        row(w_.W_gate_errors, c)[j] = row(w_.Wt2, c)[j] * row(w_.squares, j)[c];
      }
    }
    product(rows_of(w_.W_gate_errors), w_.U2, {K_, n_, V_}, Shape::kFull, Store::kSet,
            w_.gate_written);
  }

  /// el, and the underflow of F.
  [[nodiscard]] Vec rounding_of_state(int c, int v) const {
    const Vec next = get(w_.exact.next, c, v);
    const double E_n = row(w_.exact.scores.E, n_ - 1)[c];
    const Vec sums = next * next + get(w_.S2, c, v) * square(E_n) + get(w_.written, c, v);
    return sums * (3 * f_.rho_accumulation * w_.cef[c]) +
           (1.0 + load(w_.S_sum + v)) * f_.sum_underflow + next * next * f_.rho_state +
           f_.state_underflow + get(w_.small, n_ - 1, v) * f_.underflow;
  }

  /// F += Phi^2 . P + M^2 . shared, where both matrices are the same but for their diagonals.
  void carry_variance() {
    const Transition& t = w_.transition;
    if (n_ > 1) {
      product(rows_of(t.M2), w_.carried, {K_, K_, V_}, Shape::kFull, Store::kAdd, w_.F);
    } else {
      carry_over_token();
    }
    each(K_, V_, [&](int c, int v) {
      put(get(w_.F, c, v) + get(b_.P, c, v) * t.Phi2_diagonal[c] +
              get(w_.shared, c, v) * t.M2_diagonal[c],
          w_.F, c, v);
    });
  }

  /// M = k (beta k E)^T off its diagonal: one sum serves all rows.
  void carry_over_token() {
    const double* reads = row(w_.transition.TK, 0);
    const double* k = row(b_.k, 0);
    for (int v = 0; v < V_; v += kLanes) {
      Vec read{};
      for (int c = 0; c < K_; ++c) read += get(w_.carried, c, v) * square(reads[c]);
      for (int c = 0; c < K_; ++c) {
        const Vec others = read - get(w_.carried, c, v) * square(reads[c]);
        put(get(w_.F, c, v) + (others > 0 ? others : Vec{}) * square(k[c]), w_.F, c, v);
      }
    }
  }

  void next_state() {
    const double* decay = row(w_.exact.scores.E, n_ - 1);
    const double* phi_n = row(w_.phi, n_ - 1);
    each(K_, V_, [&](int c, int v) {
      const Vec next = get(w_.exact.next, c, v);
      const Vec carried =
          get(b_.Gamma, c, v) + magnitude(get(b_.S, c, v)) * (f_.gate_unit * phi_n[c]);
      put(carried * decay[c] + root(get(w_.gate_written, c, v)) + stall(next, get(b_.S, c, v)),
          b_.Gamma, c, v);
      put(get(w_.F, c, v), b_.P, c, v);
      put(next, b_.S, c, v);
    });
    b_.has_error = true;
  }

  /// What a state that is rounded every token loses always to the same side: a change smaller than
  /// half a unit is lost whole, and a little of larger ones (values near the middle stall).
  [[nodiscard]] Vec stall(Vec next, Vec before) const {
    const Vec unit = magnitude(next) * f_.state_stall;
    const Vec change = magnitude(next - before);
    const Vec little = unit * 0.05;
    return change < unit && change > little ? change : little;
  }

  BoundBlock& b_;
  const BoundFactors& f_;
  const Work& w_;
  int n_;
  int K_;
  int V_;
  double sums_;           ///< variance of a sum over K, of 1
  bool repeats_ = false;  ///< some mu is above 1
  bool gates_matter_ = true;
  bool sums_matter_ = true;
  double gate_limit_ = 0;     ///< of the variance that gates add to a term of a score
  double written_limit_ = 0;  ///< (W^2)^T . U^2 is at most this times (W^2)^T . Z
};

long scratch_size(int tokens, int K, int V) {
  Arena arena(nullptr);
  make_work(arena, tokens, K, V);
  return arena.used();
}

void advance(BoundBlock& block, const BoundFactors& factors, double* scratch) {
  Arena arena(scratch);
  const Work work = make_work(arena, block.tokens, block.K, block.V);
  BlockBound(block, factors, work).advance();
}

}  // namespace
}  // namespace KDA_ISA

extern const VarianceKernel KDA_VARIANCE_KERNEL{KDA_ISA::scratch_size, KDA_ISA::advance};

}  // namespace kda::reference
