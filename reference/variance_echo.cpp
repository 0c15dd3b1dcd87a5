#include "reference/variance_work.hpp"
#include "reference/vector.hpp"

// Echoes: where tokens repeat one key, T holds one number all along a diagonal, block after block,
// and rounds it the same way everywhere. Such errors add with their signs, not as variances: each
// echo carries one signed matrix Z through the exact transition (docs/bound.md). Must not include
// the standard library (see vector.hpp).

namespace kda::reference::KDA_ISA {
namespace {

constexpr int kNear = 4;  ///< diagonals, and distances along them, that are looked at for repeats
// Limits lie off the numbers that exact inputs make, so that no rounding decides.
constexpr auto kLeast = static_cast<Real>(3.5);  ///< fewer equal entries are next to independent
constexpr auto kWhole = static_cast<Real>(0.6);  ///< part of an entry that may begin a new number
constexpr int kLeastEqual = 4;
constexpr int kValues = 4;  ///< different numbers of one diagonal that may repeat
constexpr auto kEqual = static_cast<Real>(0.3);      ///< unit roundoffs between equal entries
constexpr auto kLeftOut = static_cast<Real>(0.02);   ///< share of the squared sums of T
constexpr auto kVanished = static_cast<Real>(0.01);  ///< share of a variance

Real square(Real x) { return x * x; }
Real magnitude(Real x) { return x < 0 ? -x : x; }
Real* row(MatrixRef x, int i) { return x.data + i * x.pitch; }

/// The unit roundoff of this variance.
Real unit_of(Real rho) { return static_cast<Real>(__builtin_sqrt(rho) / kKappa); }

/// How much of x rounds like `value`: all of it up to half a unit roundoff away, nothing from a
/// whole one on.
Real nearness(Real x, Real value, Real unit) {
  const Real close = 2 * (1 - magnitude(x - value) / (unit * value));
  return close > 1 ? 1 : (close > 0 ? close : 0);
}

/// Finds the numbers that diagonals of T repeat.
class EchoFinder {
 public:
  EchoFinder(MatrixRef T, int tokens, Real unit) : T_(T), n_(tokens), unit_(unit) {}

  /// Echoes that go on, then new ones, into `after`.
  void find(const Echoes& before, Echoes& after) {
    after.count = before.count;
    after.sizes = before.sizes;
    after.block = before.block;
    for (int s = 0; s < before.count; ++s) {
      after.diagonal[s] = before.diagonal[s];
      after.value[s] = before.value[s];
      after.before[s] = s;
    }
    weigh(after);
    if (repeats()) {
      for (int d = 0; d < n_; ++d) search(d, after);
    }
    choose(after);
  }

  /// How much of entry j of its diagonal is the number of echo s; of all echoes no more than 1.
  [[nodiscard]] Real part(const Echoes& echoes, int s, int j) const {
    Real left = 1;
    for (int before = 0; before < s; ++before) {
      if (echoes.diagonal[before] != echoes.diagonal[s]) continue;
      left -= near(entry(echoes.diagonal[s], j), echoes.value[before]);
    }
    const Real own = near(entry(echoes.diagonal[s], j), echoes.value[s]);
    return own < left ? own : (left > 0 ? left : 0);
  }

  /// Whether one of the first diagonals mostly holds what it held a few rows before. T of different
  /// keys ends here.
  [[nodiscard]] bool repeats() const {
    for (int d = 1; d <= kNear; ++d) {
      for (int distance = 1; distance <= kNear; ++distance) {
        int pairs = 0;
        int equal = 0;
        for (int j = d + distance; j < n_; ++j) {
          const Real now = entry(d, j);
          const Real then = entry(d, j - distance);
          if (now == 0 || then == 0) continue;
          ++pairs;
          if (magnitude(now - then) <= unit_ * now * kEqual) ++equal;
        }
        if (equal >= kLeastEqual && 2 * equal >= pairs) return true;
      }
    }
    return false;
  }

 private:
  struct Candidate {
    int diagonal;
    Real value;
    Real weight;
  };

  [[nodiscard]] Real entry(int d, int j) const { return magnitude(row(T_, j)[j - d]); }

  [[nodiscard]] Real near(Real x, Real value) const { return nearness(x, value, unit_); }

  /// Squared sums of the entries that echo again.
  void weigh(Echoes& echoes) {
    for (int s = 0; s < echoes.count; ++s) {
      const int d = echoes.diagonal[s];
      Real sum = 0;
      for (int j = d; j < n_; ++j) sum += part(echoes, s, j) * entry(d, j);
      echoes.weight[s] = square(sum);
      total_ += square(sum);
    }
  }

  /// Candidates of diagonal d: the mean of what lies near the first entry that is near no other
  /// number.
  void search(int d, const Echoes& echoes) {
    Real left[kBoundTokens];
    for (int j = d; j < n_; ++j) {
      left[j] = entry(d, j) > 0 ? 1 : 0;
      for (int s = 0; s < echoes.count; ++s) {
        if (echoes.diagonal[s] == d) left[j] -= part(echoes, s, j);
      }
    }
    int found = 0;
    for (int first = d; first < n_ && found < kValues; ++first) {
      if (left[first] < kWhole) continue;
      const Candidate x = take(d, mean_near(d, entry(d, first), left), left);
      if (x.weight == 0) continue;
      candidates_[count_++] = x;
      total_ += x.weight;
      ++found;
    }
  }

  /// Takes what lies near `value` from what is left of diagonal d. No weight: too little of it.
  Candidate take(int d, Real value, Real* left) const {
    Real count = 0;
    Real sum = 0;
    for (int j = d; j < n_; ++j) {
      const Real own = near(entry(d, j), value);
      const Real taken = own < left[j] ? own : left[j];
      if (!(taken > 0)) continue;
      count += taken;
      sum += taken * entry(d, j);
      left[j] -= taken;
    }
    return {d, value, count < kLeast ? 0 : square(sum)};
  }

  [[nodiscard]] Real mean_near(int d, Real value, const Real* left) const {
    Real count = 0;
    Real sum = 0;
    for (int j = d; j < n_; ++j) {
      const Real close = left[j] > 0 ? near(entry(d, j), value) : 0;
      count += close;
      sum += close * entry(d, j);
    }
    return sum / count;
  }

  /// Takes the heaviest candidates, and lets those taken answer for what is left out.
  void choose(Echoes& echoes) {
    Real kept = 0;
    for (int s = 0; s < echoes.count; ++s) kept += echoes.weight[s];
    for (int taken = 0; taken < kEchoes && kept < (1 - kLeftOut) * total_; ++taken) {
      Candidate* best = candidates_;
      for (Candidate* x = candidates_; x < candidates_ + count_; ++x) {
        if (x->weight > best->weight) best = x;
      }
      if (count_ == 0 || best->weight == 0) break;
      const int s = echoes.count++;
      echoes.diagonal[s] = best->diagonal;
      echoes.value[s] = best->value;
      echoes.weight[s] = best->weight;
      echoes.before[s] = -1;
      kept += best->weight;
      best->weight = 0;
    }
    echoes.gain = kept > 0 ? static_cast<Real>(__builtin_sqrt(total_ / kept)) : 1;
  }

  MatrixRef T_;
  int n_;
  Real unit_;
  Real total_ = 0;
  Candidate candidates_[kBoundTokens * kValues] = {};
  int count_ = 0;
};

/// One block of echoes.
class EchoBlock {
 public:
  EchoBlock(BoundBlock& block, const BoundFactors& factors, const Work& work)
      : b_(block),
        w_(work),
        n_(block.tokens),
        K_(block.K),
        V_(block.V),
        rho_operands_(factors.rho_operands),
        deviation_(static_cast<Real>(__builtin_sqrt(factors.rho_triangle))),
        finder_(work.exact.T, n_, unit_of(factors.rho_triangle)) {}

  void advance(MatrixRef omega) {
    clear(w_.echo_most);
    for (int size = 0; size < after().sizes; ++size) {
      right_sides(solved_at_once(size));
      clear(w_.echo_sum);
      for (int s = 0; s < after().count; ++s) {
        errors_of_writes(s, solved_at_once(size));
        pass_state_on(s, size);
        read(s, size);
        carry(s, size);
      }
      each(n_, [&](int i, int v) {
        store(larger(get(w_.echo_most, i, v), get(w_.echo_sum, i, v)), row(w_.echo_most, i) + v);
      });
    }
    each(n_, [&](int i, int v) {
      store(get(omega, i, v) + get(w_.echo_most, i, v), row(omega, i) + v);
    });
  }

  /// Where one key comes over and over, a row of Q holds nearly one number too: what it repeats
  /// rounds alike. omega += rho (Q . U)^2 over what lies near one number, for one after another.
  void read_scores(MatrixRef omega) {
    Real left[kBoundTokens * kBoundTokens];
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j <= i; ++j) left[i * n_ + j] = row(w_.exact.scores.Q, i)[j] != 0 ? 1 : 0;
    }
    const MatrixRef parts = w_.mu2_T2;  // not needed any more
    for (int value = 0; value < kValues; ++value) {
      bool some = false;
      for (int i = 0; i < n_; ++i)
        some = take_scores(i, left + long{i} * n_, row(parts, i)) || some;
      if (!some) continue;
      product(rows_of(parts), w_.exact.U, {n_, n_, V_}, Shape::kLower, Store::kSet, w_.echo_reads);
      each(n_, [&](int i, int v) {
        const Vec x = get(w_.echo_reads, i, v);
        store(get(omega, i, v) + x * x * rho_operands_, row(omega, i) + v);
      });
    }
  }

  /// Ends echoes that have vanished or are too many; sums the squares of the others.
  void end() {
    Echoes& echoes = after();
    for (int s = echoes.count - 1; s >= 0; --s) {
      if (echoes.weight[s] == 0 && has_vanished(s)) give_up(s);
    }
    while (echoes.count > kEchoes) give_up(lightest());
    each(K_, [&](int c, int v) {
      Vec most{};
      for (int size = 0; size < echoes.sizes; ++size) {
        Vec sum{};
        for (int s = 0; s < echoes.count; ++s) {
          const Vec z = get(of_echo(echoes, s, size), c, v);
          sum += z * z;
        }
        most = larger(most, sum);
      }
      store(most, row(echoes.squares, c) + v);
    });
  }

 private:
  [[nodiscard]] const Echoes& before() const { return b_.echoes[0]; }
  [[nodiscard]] Echoes& after() const { return b_.echoes[1]; }

  static Vec get(MatrixRef x, int i, int c) { return load(row(x, i) + c); }
  static Vec larger(Vec x, Vec y) { return x > y ? x : y; }

  template <class F>
  void each(int rows, F f) const {
    for (int i = 0; i < rows; ++i) {
      for (int v = 0; v < V_; v += kLanes) f(i, v);
    }
  }

  void clear(MatrixRef x) const {
    each(n_, [&](int i, int v) { store(Vec{}, row(x, i) + v); });
  }

  [[nodiscard]] MatrixRef of_echo(const Echoes& echoes, int s, int size) const {
    const long first = (long{size} * 2 * kEchoes + s) * K_;
    return {echoes.Z.data + first * echoes.Z.pitch, echoes.Z.pitch};
  }

  /// Tokens that an implementation with blocks of this size solves for together.
  [[nodiscard]] int solved_at_once(int size) const { return after().block >> size; }

  /// R where every part starts from the state before itself: R - A . U over the parts before.
  void right_sides(int part) {
    each(n_, [&](int i, int v) { store(get(w_.exact.R, i, v), row(w_.echo_R, i) + v); });
    for (int first = part; first < n_; first += part) {
      const int rows = n_ - first < part ? n_ - first : part;
      product(rows_of({row(w_.exact.scores.A, first), w_.exact.scores.A.pitch}), w_.exact.U,
              {rows, first, V_}, Shape::kFull, Store::kSet, w_.echo_reads);
      each(rows, [&](int i, int v) {
        Real* out = row(w_.echo_R, first + i) + v;
        store(load(out) - get(w_.echo_reads, i, v), out);
      });
    }
  }

  /// y, the error of U that T makes in the block: e_j = sqrt(rho) T_(j,j-d) R_(j-d) where T echoes,
  /// and what later parts read of earlier ones, y = e - T . (A . y).
  void errors_of_writes(int s, int part) {
    const Echoes& echoes = after();
    const int d = echoes.diagonal[s];
    for (int j = 0; j < n_; ++j) {
      Real factor = 0;
      if (echoes.weight[s] > 0 && j % part >= d) {
        factor = deviation_ * echoes.gain * finder_.part(echoes, s, j) * row(w_.exact.T, j)[j - d];
      }
      const Real* R = row(w_.echo_R, factor == 0 ? j : j - d);
      for (int v = 0; v < V_; v += kLanes) {
        store(load(R + v) * factor, row(w_.echo_writes, j) + v);
      }
    }
    for (int first = part; echoes.weight[s] > 0 && first < n_; first += part) {
      const int rows = n_ - first < part ? n_ - first : part;
      product(rows_of({row(w_.exact.scores.A, first), w_.exact.scores.A.pitch}), w_.echo_writes,
              {rows, first, V_}, Shape::kFull, Store::kSet, w_.echo_reads);
      const MatrixRef T{row(w_.exact.T, first) + first, w_.exact.T.pitch};
      product(rows_of(T), w_.echo_reads, {rows, rows, V_}, Shape::kLower, Store::kSet, w_.right);
      each(rows, [&](int i, int v) {
        Real* y = row(w_.echo_writes, first + i) + v;
        store(load(y) - get(w_.right, i, v), y);
      });
    }
  }

  /// y -= TK . Z.
  void pass_state_on(int s, int size) {
    const int from = after().before[s];
    if (from < 0) return;
    product(rows_of(w_.transition.TK), of_echo(before(), from, size), {n_, K_, V_}, Shape::kFull,
            Store::kSet, w_.echo_reads);
    each(n_, [&](int i, int v) {
      Real* y = row(w_.echo_writes, i) + v;
      store(load(y) - get(w_.echo_reads, i, v), y);
    });
  }

  /// sum += (qE . Z + Q . y)^2.
  void read(int s, int size) {
    const int from = after().before[s];
    const MatrixRef qE{row(w_.exact.reads, n_), w_.exact.reads.pitch};
    if (from >= 0) {
      product(rows_of(qE), of_echo(before(), from, size), {n_, K_, V_}, Shape::kFull, Store::kSet,
              w_.echo_reads);
    }
    product(rows_of(w_.exact.scores.Q), w_.echo_writes, {n_, n_, V_}, Shape::kLower,
            from >= 0 ? Store::kAdd : Store::kSet, w_.echo_reads);
    each(n_, [&](int i, int v) {
      const Vec x = get(w_.echo_reads, i, v);
      store(get(w_.echo_sum, i, v) + x * x, row(w_.echo_sum, i) + v);
    });
  }

  /// Z' = E_n Z + W^T . y.
  void carry(int s, int size) {
    const int from = after().before[s];
    const MatrixRef next = of_echo(after(), s, size);
    product(rows_of(w_.exact.scores.Wt), w_.echo_writes, {K_, n_, V_}, Shape::kFull, Store::kSet,
            next);
    if (from < 0) return;
    const MatrixRef Z = of_echo(before(), from, size);
    each(K_, [&](int c, int v) {
      const Real decay = row(w_.exact.scores.E, n_ - 1)[c];
      store(get(next, c, v) + get(Z, c, v) * decay, row(next, c) + v);
    });
  }

  /// Moves what of a row of Q lies near its last number that is left into `part`. False where it is
  /// less than kLeast entries.
  bool take_scores(int i, Real* left, Real* part) const {
    const Real* Q = row(w_.exact.scores.Q, i);
    for (int j = 0; j < up_to(n_, kScoreRows); ++j) part[j] = 0;
    int last = i;
    while (last >= 0 && left[last] < kWhole) --last;
    if (last < 0) return false;
    const Real unit = unit_of(rho_operands_);
    Real count = 0;
    for (int j = last; j >= 0; --j) {
      const Real own = nearness(magnitude(Q[j]), magnitude(Q[last]), unit);
      const Real taken = own < left[j] ? own : left[j];
      part[j] = taken * Q[j];
      left[j] -= taken;
      count += taken;
    }
    if (count >= kLeast) return true;
    for (int j = 0; j <= i; ++j) part[j] = 0;
    return false;
  }

  /// Whatever reads the state, K Z^2 in the place of (sum_c q_c Z_cv)^2 adds next to nothing to P.
  [[nodiscard]] bool has_vanished(int s) const {
    auto all = Vec{} == Vec{};
    each(K_, [&](int c, int v) {
      all &= largest(s, c, v) * static_cast<Real>(K_) <= get(b_.P_next, c, v) * kVanished;
    });
    for (int lane = 0; lane < kLanes; ++lane) {
      if (all[lane] == 0) return false;
    }
    return true;
  }

  /// Z^2 of the block size that has most of it.
  [[nodiscard]] Vec largest(int s, int c, int v) const {
    Vec most{};
    for (int size = 0; size < after().sizes; ++size) {
      const Vec z = get(of_echo(after(), s, size), c, v);
      most = larger(most, z * z);
    }
    return most;
  }

  /// The oldest of those that matter least now.
  [[nodiscard]] int lightest() const {
    int best = 0;
    for (int s = 1; s < after().count; ++s) {
      if (after().weight[s] < after().weight[best]) best = s;
    }
    return best;
  }

  /// P += K Z^2, which no sum over channels exceeds; the echoes behind it move up.
  void give_up(int s) {
    Echoes& echoes = after();
    each(K_, [&](int c, int v) {
      Real* P = row(b_.P_next, c) + v;
      store(load(P) + largest(s, c, v) * static_cast<Real>(K_), P);
    });
    --echoes.count;
    for (int to = s; to < echoes.count; ++to) {
      echoes.diagonal[to] = echoes.diagonal[to + 1];
      echoes.value[to] = echoes.value[to + 1];
      echoes.weight[to] = echoes.weight[to + 1];
      for (int size = 0; size < echoes.sizes; ++size) {
        const MatrixRef into = of_echo(echoes, to, size);
        __builtin_memmove(into.data, of_echo(echoes, to + 1, size).data,
                          sizeof(Real) * static_cast<unsigned long>(K_ * into.pitch));
      }
    }
  }

  BoundBlock& b_;
  const Work& w_;
  int n_;
  int K_;
  int V_;
  Real rho_operands_;
  Real deviation_;  ///< of one rounding of T, relative
  EchoFinder finder_;
};

}  // namespace

bool repeats(MatrixRef T, int tokens, Real rho) {
  return rho > 0 && EchoFinder(T, tokens, unit_of(rho)).repeats();
}

bool find_echoes(BoundBlock& block, const BoundFactors& factors, MatrixRef T) {
  if (block.echoes == nullptr || factors.rho_triangle == 0) return false;
  EchoFinder(T, block.tokens, unit_of(factors.rho_triangle)).find(block.echoes[0], block.echoes[1]);
  return block.echoes[1].count > 0;
}

void advance_echoes(BoundBlock& block, const BoundFactors& factors, const Work& work,
                    MatrixRef omega) {
  EchoBlock(block, factors, work).advance(omega);
}

void add_repeated_scores(BoundBlock& block, const BoundFactors& factors, const Work& work,
                         MatrixRef omega) {
  EchoBlock(block, factors, work).read_scores(omega);
}

void end_echoes(BoundBlock& block, const BoundFactors& factors, const Work& work) {
  EchoBlock(block, factors, work).end();
}

}  // namespace kda::reference::KDA_ISA
