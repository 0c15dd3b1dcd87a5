#include "reference/variance_work.hpp"
#include "reference/vector.hpp"

// The variance bound of one block of tokens: the chunked form once more with every matrix squared
// by element. The letters are those of docs/bound.md. Compiled once per instruction set and type of
// number with KDA_ISA (namespace) and KDA_REAL. Must not include the standard library (see
// vector.hpp).

namespace kda::reference::KDA_ISA {
namespace {

constexpr bool kChecked = sizeof(Real) < sizeof(double);  ///< numbers may leave the range of Real
// Limits of what f32 holds, see BlockBound::in_range.
constexpr Real kMost = 0x1p76F;
constexpr Real kLeast = 0x1p-12F;
constexpr auto kNegligible = static_cast<Real>(0.01);  ///< share of a variance

Real square(Real x) { return x * x; }
Real larger(Real x, Real y) { return x > y ? x : y; }
Real* row(MatrixRef x, int i) { return x.data + i * x.pitch; }
MatrixRef from_row(MatrixRef x, int i) { return {row(x, i), x.pitch}; }

/// Applies what `prepare` returns for a row to the vectors of that row. It holds where the rows
/// begin that it reads and writes: looked up in a matrix, that would be read again after every
/// store.
template <class F>
void each_row(int rows, int columns, F prepare) {
  for (int i = 0; i < rows; ++i) {
    const auto f = prepare(i);
    for (int c = 0; c < columns; c += kLanes) f(c);
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

  /// False where f32 has lost something that matters; f64 holds everything.
  bool advance() {
    compute_exact(b_, w_.exact);
    compute_transition(b_, w_.exact, w_.transition);
    const bool repeats_T = b_.watch_echoes && repeats(w_.exact.T, n_, f_.rho_triangle);
    const bool repeats_Q = b_.watch_scores && repeats(w_.exact.T, n_, f_.rho_operands);
    // What repeats is summed with both signs, for which f64 is there.
    if (kChecked && (repeats_T || repeats_Q)) return false;
    if (repeats_T && b_.echoes == nullptr) return false;
    echoes_ = find_echoes(b_, f_, w_.exact.T);
    gate_errors();
    square_pairs();
    square_rows();
    if (has_echoes()) add_echoes();
    if (b_.has_error) add_doubts();
    reads_of_state();
    solve_variance();
    const MatrixRef omega = from_row(w_.state_part, n_);
    if (echoes_) advance_echoes(b_, f_, w_, omega);
    if (repeats_Q) add_repeated_scores(b_, f_, w_, omega);
    output_variance();
    b_.state_changed = !is_identity();
    if (b_.state_changed) state_variance();
    return !kChecked || in_range();
  }

 private:
  /// phi and cef, and what gates do to the scores.
  void gate_errors() {
    for (int c = 0; c < K_; c += kLanes) {
      Vec cef{};
      for (int i = 0; i < n_; ++i) {
        const Vec decay = get(w_.exact.scores.decays, i, c);
        cef = cef * decay * decay + 1.0;
      }
      store(cef, w_.cef + c);
    }
    compute_gate_sums(b_, f_.gate_unit, w_.gates);
    weigh_gates();
    if (!gates_matter_) return;
    compute_gate_scores(b_, w_.exact.scores.decays, w_.gates, w_.A_gate, w_.Q_gate, w_.channels);
  }

  /// Beside 16-bit operands, errors of gates inside the block and of the sums are next to nothing.
  /// Then an upper limit takes their place, at most kNegligible of what it is added to, instead of
  /// their products.
  void weigh_gates() {
    Real phi = 0;
    Real cef = 0;
    for (int c = 0; c < K_; ++c) {
      phi = larger(phi, row(w_.gates.phi, n_ - 1)[c]);
      cef = larger(cef, w_.cef[c]);
    }
    const Real rounding = 2 * f_.rho_operands + sums_;
    gate_limit_ = 2 * square(f_.gate_unit * phi);
    gates_matter_ = rounding == 0 || !(gate_limit_ <= kNegligible * rounding);
    // Z, the variance of what is written, holds U^2 twice with this factor.
    written_limit_ = 1 / (2 * rounding);
    sums_matter_ =
        rounding == 0 || !(3 * f_.rho_accumulation * cef * written_limit_ <= kNegligible);
  }

  /// Roundings of a sum over K of terms that were themselves rounded `tokens` times on their way:
  /// three times a token, where the state is kept from token to token.
  [[nodiscard]] Real sums_after(int tokens) const {
    return sums_ + static_cast<Real>(3 * tokens) * f_.rho_accumulation;
  }

  /// Roundings of what key `token` reads of the state.
  [[nodiscard]] Real key_roundings(int token) const {
    return 3 * f_.rho_operands + sums_after(token + 1);
  }

  void square_pairs() {
    repeats_ = false;
    for (int i = 0; i < n_; ++i) {
      pair_errors(i);
      square_row(i);
      const Real mu = repetition(i);
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
      Real terms = 2 * f_.rho_operands + sums_after(i - j);
      Real by_gates_k = 0;
      Real by_gates_q = 0;
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
    Real sum_of_t = 0;
    Real sum_of_q = 0;
    for (int j = 0; j <= i; ++j) {
      const Real T2 = square(row(w_.exact.T, i)[j]);
      const Real Q2 = square(row(w_.exact.scores.Q, i)[j]);
      row(w_.T2, i)[j] = T2;
      row(w_.Q2, i)[j] = Q2;
      sum_of_t += T2;
      sum_of_q += Q2;
    }
    w_.T_sum[i] = sum_of_t;
    w_.Q_sum[i] = sum_of_q;
  }

  /// mu: how much the errors of T add up over tokens that repeat token i; 1 without any.
  [[nodiscard]] Real repetition(int i) const {
    Real sum = 0;
    Real squares = 0;
    for (int j = 0; j <= i; ++j) {
      if (b_.repeated[j] != b_.repeated[i]) continue;
      sum += static_cast<Real>(__builtin_fabs(row(w_.exact.T, i)[j]));
      squares += row(w_.T2, i)[j];
    }
    return squares > 0 ? larger(1, sum * sum / squares) : 1;
  }

  /// R^2 is a second moment as well: its part from the state goes the way of the reads of keys.
  [[nodiscard]] Real doubt_about_r() const {
    const Real R_roundings = 2 * f_.rho_triangle + sums_;
    return key_roundings(0) == 0 ? 0 : R_roundings / key_roundings(0);
  }

  /// Squares of what is [n,K], [n,V] and [K,V], and their sums.
  void square_rows() {
    Real km = 0;
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
    each_row(n_, V_, [&](int i) {
      return [U = row(w_.exact.U, i), R = row(w_.exact.R, i), at_u2 = row(w_.U2, i),
              at_r2 = row(w_.R2, i), before = i > 0 ? row(w_.small, i - 1) : nullptr,
              sum = row(w_.small, i)](int v) {
        const Vec u = load(U + v);
        const Vec r = load(R + v);
        store(u * u, at_u2 + v);
        store(r * r, at_r2 + v);
        store(before == nullptr ? u * u : load(before + v) + u * u, sum + v);
      };
    });
    each_row(K_, static_cast<int>(up_to(n_, kScoreRows)), [&](int c) {
      return [weights = row(w_.exact.scores.Wt, c), out = row(w_.Wt2, c)](int j) {
        store(load(weights + j) * load(weights + j), out + j);
      };
    });
    for (int v = 0; v < V_; v += kLanes) store(Vec{}, w_.S_sum + v);
    each_row(K_, V_, [&](int c) {
      return [S = row(b_.S, c), at_gamma = row(b_.Gamma, c), P = row(b_.P, c),
              doubt = row(w_.doubt, c), at_s2 = row(w_.S2, c), at_s2_keys = row(w_.S2_keys, c),
              carried = row(w_.carried, c), sum = w_.S_sum, more = 1 + doubt_about_r(),
              rho = f_.rho_operands](int v) {
        const Vec s = load(S + v);
        const Vec gamma = load(at_gamma + v);
        const Vec p = load(P + v);
        const Vec d = p + gamma * gamma;
        const Vec s2 = s * s + d;
        store(d, doubt + v);
        store(s2, at_s2 + v);
        store(s * s + d * more, at_s2_keys + v);
        store(read_alike(s2, gamma, rho) + p, carried + v);
        store(load(sum + v) + s2, sum + v);
      };
    });
  }

  /// Of what is before the block.
  [[nodiscard]] bool has_echoes() const { return b_.echoes != nullptr && b_.echoes[0].count > 0; }

  /// They are part of what is held for the state.
  void add_echoes() {
    each_row(K_, V_, [&](int c) {
      return [echoes = row(b_.echoes[0].squares, c), doubt = row(w_.doubt, c), s2 = row(w_.S2, c),
              s2_keys = row(w_.S2_keys, c), carried = row(w_.carried, c), sum = w_.S_sum,
              more = 1 + doubt_about_r(), rho = f_.rho_operands](int v) {
        const Vec echo = load(echoes + v);
        store(load(doubt + v) + echo, doubt + v);
        store(load(s2 + v) + echo, s2 + v);
        store(load(s2_keys + v) + echo * more, s2_keys + v);
        store(load(carried + v) + echo * rho, carried + v);
        store(load(sum + v) + echo, sum + v);
      };
    });
  }

  /// The variance of what all tokens of the block read of an element of the state alike: the
  /// rounding of the operand, and its gates.
  static Vec read_alike(Vec second_moment, Vec gates, Real rho_operands) {
    return second_moment * rho_operands + 2.0 * gates * gates;
  }

  /// U^2 becomes a second moment too: what is rounded is what is held, error and all. It matters
  /// where an exact value has vanished and its error has not yet.
  void add_doubts() {
    each_row(n_, K_, [&](int i) {
      return [at_tk = row(w_.transition.TK, i), square = row(w_.squares, i)](int c) {
        store(load(at_tk + c) * load(at_tk + c), square + c);
      };
    });
    product(rows_of(w_.squares), w_.doubt, {n_, K_, V_}, Shape::kFull, Store::kAdd, w_.U2);
  }

  /// (roundings) (x E)^2 . S^2 + 2 u^2 (x E phi)^2 . S^2 + (rounding of the sum) ((x E) . S)^2, for
  /// x = k and q. What all tokens read alike is not in it: it passes through the transition.
  void reads_of_state() {
    each_row(2 * n_, K_, [&](int i) {
      const int token = i < n_ ? i : i - n_;
      const Real rounding =
          i < n_ ? key_roundings(token) : 2 * f_.rho_operands + sums_after(token + 1);
      return [rounding, reads = row(w_.exact.reads, i), phi = row(w_.gates.phi, token),
              out = row(w_.read_errors, i), unit = f_.gate_unit](int c) {
        const Vec read = load(reads + c);
        const Vec gate = load(phi + c) * unit;
        store(read * read * (rounding + 2.0 * gate * gate), out + c);
      };
    });
    each_row(2 * n_, V_, [&](int i) {
      return [read = row(w_.exact.from_state, i), out = row(w_.state_part, i),
              sums = sums_](int v) { store(load(read + v) * load(read + v) * sums, out + v); };
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
    const Real eta2 = f_.underflow;
    each_row(n_, V_, [&](int i) {
      return [pi = row(pi, i), value = row(b_.v, i), at_r2 = row(w_.R2, i),
              u_sum = row(w_.small, i), s_sum = w_.S_sum, out = row(w_.right, i),
              tiny = b_.underflow.operands, km = w_.k_sum[i], rho = f_.rho_operands, eta2,
              r_error = sums_ + (repeats_ ? 0 : 2 * f_.rho_triangle)](int v) {
        const Vec small =
            (load(s_sum + v) + load(u_sum + v) * (2 * km)) * eta2 + load(tiny + v) * km;
        store(load(pi + v) + small + load(value + v) * load(value + v) * rho +
                  load(at_r2 + v) * r_error,
              out + v);
      };
    });
    product(rows_of(w_.T2), w_.right, {n_, n_, V_}, Shape::kLower, Store::kSet, w_.zeta);
    if (repeats_) {
      each_row(n_, V_, [&](int i) {
        return [at_r2 = row(w_.R2, i), out = row(w_.right, i), rounding = 2 * f_.rho_triangle](
                   int v) { store(load(at_r2 + v) * rounding, out + v); };
      });
      product(rows_of(w_.mu2_T2), w_.right, {n_, n_, V_}, Shape::kLower, Store::kAdd, w_.zeta);
    }
    for (int v = 0; v < V_; v += kLanes) store(Vec{}, w_.columns + v);
    each_row(n_, V_, [&](int i) {
      return [zeta = row(w_.zeta, i), at_r2 = row(w_.R2, i), at_u2 = row(w_.U2, i),
              largest = w_.columns, tiny = b_.underflow.operands,
              written = b_.beta[i] == 0 ? Real{0} : Real{1}, sum = w_.T_sum[i] * eta2,
              u_error = 2 * f_.rho_operands + sums_](int v) {
        const Vec before = load(largest + v);
        const Vec most = load(at_r2 + v) > before ? load(at_r2 + v) : before;
        store(most, largest + v);
        store(load(zeta + v) + load(at_u2 + v) * u_error + load(tiny + v) * written + most * sum,
              zeta + v);
      };
    });
  }

  /// omega and sigma of o.
  void output_variance() {
    each_row(n_, V_, [&](int i) {
      return [zeta = row(w_.zeta, i), at_u2 = row(w_.U2, i), out = row(w_.right, i),
              u_error = f_.rho_operands + sums_](int v) {
        store(load(zeta + v) + load(at_u2 + v) * u_error, out + v);
      };
    });
    const MatrixRef omega = from_row(w_.state_part, n_);
    product(rows_of(w_.Q2), w_.right, {n_, n_, V_}, Shape::kLower, Store::kAdd, omega);
    product(rows_of(w_.Q_errors), w_.U2, {n_, n_, V_}, Shape::kLower, Store::kAdd, omega);
    product(rows_of(w_.transition.Psi2), w_.carried, {n_, K_, V_}, Shape::kFull, Store::kAdd,
            omega);
    each_row(n_, V_, [&](int i) {
      return [omega = row(omega, i), u_sum = row(w_.small, i), s_sum = w_.S_sum, o = row(b_.o, i),
              out = row(b_.sigma_o, i), tiny = b_.underflow.operands, stored = b_.underflow.output,
              k_and_q = w_.k_sum[i] + w_.q_sum[i] + 1, squares = w_.q_sum[i] + w_.Q_sum[i],
              eta2 = f_.underflow, rho = f_.rho_output, scale2 = square(f_.scale)](int v) {
        const Vec small =
            (load(s_sum + v) + load(u_sum + v) * k_and_q) * eta2 + load(tiny + v) * squares;
        const Vec variance = load(omega + v) + small + load(o + v) * load(o + v) * rho;
        store(root(variance * scale2 + load(stored + v)), out + v);
      };
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
    gate_errors_of_writes();
    const Extents extents{K_, n_, V_};
    if (sums_matter_) {
      product(rows_of(w_.Wt2), w_.U2, extents, Shape::kFull, Store::kSet, w_.written);
    } else {
      limit_sums();
    }
    each_row(n_, V_, [&](int i) {
      return [zeta = row(w_.zeta, i), at_u2 = row(w_.U2, i), out = row(w_.right, i),
              tiny = b_.underflow.sums, u_error = 2 * f_.rho_operands + sums_](int v) {
        store(load(zeta + v) + load(at_u2 + v) * u_error + load(tiny + v), out + v);
      };
    });
    product(rows_of(w_.Wt2), w_.right, extents, Shape::kFull, Store::kSet, w_.F);
    carry_variance();
    next_state();
    if (echoes_) end_echoes(b_, f_, w_);
  }

  /// An upper limit of the roundings of sums into what follows of Wt2, whose product is F.
  void limit_sums() {
    each_row(K_, static_cast<int>(up_to(n_, kScoreRows)), [&](int c) {
      return [factor = 1 + written_limit_ * rounding_of_sums(c), out = row(w_.Wt2, c)](int j) {
        store(load(out + j) * factor, out + j);
      };
    });
  }

  /// Of the sums that row c of the state went through in the block.
  [[nodiscard]] Real rounding_of_sums(int c) const { return 3 * f_.rho_accumulation * w_.cef[c]; }

  /// (W (error of the decay from j to the end))^2 . U^2, in units of sigma^2.
  void gate_errors_of_writes() {
    each_row(n_, K_, [&](int j) {
      return [linear_n = row(w_.gates.linear, n_ - 1), prefix_n = row(w_.gates.prefix, n_ - 1),
              linear_j = row(w_.gates.linear, j), prefix_j = row(w_.gates.prefix, j),
              out = row(w_.squares, j), unit = f_.gate_unit](int c) {
        const Vec linear = load(linear_n + c) - load(linear_j + c);
        const Vec prefix = load(prefix_n + c) - load(prefix_j + c);
        const Vec error = (linear + root(prefix > 0 ? prefix : Vec{})) * unit;
        store(error * error, out + c);
      };
    });
    for (int c = 0; c < K_; ++c) {
      Real* out = row(w_.W_gate_errors, c);
      const Real* weights = row(w_.Wt2, c);
      const Real* errors = w_.squares.data + c;
      for (int j = 0; j < n_; ++j) out[j] = weights[j] * errors[j * w_.squares.pitch];
    }
    product(rows_of(w_.W_gate_errors), w_.U2, {K_, n_, V_}, Shape::kFull, Store::kSet,
            w_.gate_written);
  }

  /// F += M^2 . carried, without the diagonal of M.
  void carry_variance() {
    if (n_ > 1) {
      product(rows_of(w_.transition.M2), w_.carried, {K_, K_, V_}, Shape::kFull, Store::kAdd, w_.F);
    } else {
      carry_over_token();
    }
  }

  /// M = k (beta k E)^T off its diagonal: one sum serves all rows.
  void carry_over_token() {
    const Real* reads = row(w_.transition.TK, 0);
    const Real* k = row(b_.k, 0);
    for (int v = 0; v < V_; v += kLanes) {
      Vec read{};
      for (int c = 0; c < K_; ++c) read += get(w_.carried, c, v) * square(reads[c]);
      for (int c = 0; c < K_; ++c) {
        const Vec others = read - get(w_.carried, c, v) * square(reads[c]);
        put(get(w_.F, c, v) + (others > 0 ? others : Vec{}) * square(k[c]), w_.F, c, v);
      }
    }
  }

  /// F, el, the diagonals of Phi^2 . P + M^2 . shared, and underflow make P; one pass, since the
  /// state is large beside the caches.
  void next_state() {
    for (int v = 0; v < V_; v += kLanes) {
      store(load(b_.underflow.sums + v) + load(w_.S_sum + v) * f_.sum_underflow +
                load(b_.underflow.state + v) + get(w_.small, n_ - 1, v) * f_.underflow,
            w_.columns + v);
      if constexpr (kChecked) {
        store(Vec{}, b_.largest + v);
        store(splat(kMost), b_.least + v);
      }
    }
    each_row(K_, V_, [&](int c) {
      return
          [this, S = row(b_.S, c), P = row(b_.P, c), at_gamma = row(b_.Gamma, c), F = row(w_.F, c),
           writes = row(w_.exact.writes, c), written = sums_matter_ ? row(w_.written, c) : nullptr,
           gates = row(w_.gate_written, c), tiny = w_.columns,
           echoes = has_echoes() ? row(b_.echoes[0].squares, c) : nullptr,
           decay = row(w_.exact.scores.E, n_ - 1)[c], phi2 = w_.transition.Phi2_diagonal[c],
           m2 = w_.transition.M2_diagonal[c], sums = rounding_of_sums(c), rho = f_.rho_operands,
           stored = f_.rho_state, phi = f_.gate_unit * row(w_.gates.phi, n_ - 1)[c],
           s_next = row(b_.S_next, c), p_next = row(b_.P_next, c),
           gamma_next = row(b_.Gamma_next, c)](int v) {
            const Vec s = load(S + v);
            const Vec gamma = load(at_gamma + v);
            const Vec p = load(P + v);
            Vec s2 = s * s + p + gamma * gamma;
            if (echoes != nullptr) s2 += load(echoes + v);
            const Vec next = s * decay + load(writes + v);
            const Vec next2 = next * next;
            Vec terms = next2 + s2 * (decay * decay);
            if (written != nullptr) terms += load(written + v);
            const Vec variance = load(F + v) + terms * sums + next2 * stored + load(tiny + v) +
                                 p * phi2 + read_alike(s2, gamma, rho) * m2;
            const Vec coherent =
                (gamma + magnitude(s) * phi) * decay + root(load(gates + v)) + stall(next, s);
            store(next, s_next + v);
            store(variance, p_next + v);
            store(coherent, gamma_next + v);
            if constexpr (kChecked) check(v, next2, variance, coherent * coherent);
          };
    });
  }

  void check(int v, Vec squares, Vec variance, Vec coherent) const {
    // Written so that what is not a number counts as out of range.
    const Vec sum = squares + variance + coherent;
    const Vec all = sum <= kMost ? sum : splat(2 * kMost);
    const Vec largest = load(b_.largest + v);
    store(all > largest ? all : largest, b_.largest + v);
    const Vec some = variance >= kLeast ? variance : Vec{};
    const Vec least = load(b_.least + v);
    store(some < least ? some : least, b_.least + v);
  }

  /// What a state that is rounded every token loses always to the same side: a change smaller than
  /// half a unit is lost whole, and a little of larger ones (values near the middle stall).
  [[nodiscard]] Vec stall(Vec next, Vec before) const {
    const Vec unit = magnitude(next) * f_.state_stall;
    const Vec change = magnitude(next - before);
    const Vec little = unit * static_cast<Real>(0.05);
    return change < unit && change > little ? change : little;
  }

  /// Whether all numbers stayed inside f32. Columns come with their largest value at 2^30 to 2^34,
  /// so that squares begin below 2^70 and kMost leaves room for what T makes of them. A factor or a
  /// product below 2^-126 counts as 0, which takes at most 256 * 2^-126 * kMost = 2^-42 from a sum
  /// of up to 256 products, and kGrowth times that from what T and then Q or W make of such sums:
  /// 2^-22, a thousandth of kLeast.
  [[nodiscard]] bool in_range() const {
    constexpr Real kGrowth = 0x1p20F;
    for (int i = 0; i < n_; ++i) {
      const Real reach = larger(w_.Q_sum[i], static_cast<Real>(n_) * w_.k_sum[n_ - 1]);
      if (!(larger(1, w_.T_sum[i]) * larger(1, reach) <= kGrowth)) return false;
      if (!(w_.q_sum[i] <= kGrowth)) return false;
    }
    if (!all_within(w_.zeta, n_, 0, kMost) || !all_within(w_.U2, n_, 0, kMost)) return false;
    // The scale of o is 1 here.
    if (!all_within(b_.sigma_o, n_, static_cast<Real>(__builtin_sqrt(kLeast)), kMost)) return false;
    for (int v = 0; b_.state_changed && v < V_; ++v) {
      if (!(b_.largest[v] <= kMost && b_.least[v] >= kLeast)) return false;
    }
    return true;
  }

  /// Whether all of V columns are in [least, most]; NaN never is.
  [[nodiscard]] bool all_within(MatrixRef x, int rows, Real least, Real most) const {
    const int whole = V_ / kLanes * kLanes;
    auto inside = Vec{} == Vec{};
    for (int i = 0; i < rows; ++i) {
      for (int v = 0; v < whole; v += kLanes) {
        inside &= (get(x, i, v) >= least) & (get(x, i, v) <= most);
      }
      for (int v = whole; v < V_; ++v) {
        if (!(row(x, i)[v] >= least && row(x, i)[v] <= most)) return false;
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      if (inside[lane] == 0) return false;
    }
    return true;
  }

  BoundBlock& b_;
  const BoundFactors& f_;
  const Work& w_;
  int n_;
  int K_;
  int V_;
  Real sums_;             ///< variance of a sum over K, of 1
  bool echoes_ = false;   ///< before the block or in it
  bool repeats_ = false;  ///< some mu is above 1
  bool gates_matter_ = true;
  bool sums_matter_ = true;
  Real gate_limit_ = 0;     ///< of the variance that gates add to a term of a score
  Real written_limit_ = 0;  ///< (W^2)^T . U^2 is at most this times (W^2)^T . Z
};

}  // namespace

long scratch_size(int tokens, int K, int V) {
  Arena arena(nullptr);
  make_work(arena, tokens, K, V);
  return arena.used();
}

bool advance(BoundBlock& block, const BoundFactors& factors, Real* scratch) {
  Arena arena(scratch);
  const Work work = make_work(arena, block.tokens, block.K, block.V);
  return BlockBound(block, factors, work).advance();
}

}  // namespace kda::reference::KDA_ISA
