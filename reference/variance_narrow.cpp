#include "reference/variance_isa.hpp"
#include "reference/variance_work.hpp"
#include "reference/vector.hpp"

// The variance bound in f32, compiled once per instruction set with KDA_ISA and KDA_VARIANCE_KERNEL
// (name of the table). A variance needs few bits but a wide range: every column of the values has a
// power of two of its own as its unit, and a block of which something that matters leaves the range
// of f32 is refused, for f64 to do. Must not include the standard library (see vector.hpp).

namespace kda::reference {
namespace KDA_ISA {
namespace {

using Wide = BoundBlockOf<double>;
using WideFactors = BoundFactorsOf<double>;
/// A vector of f64, and as many f32.
constexpr int kWideLanes = kLanes / 2;
using WideVec [[gnu::vector_size(kWideLanes * sizeof(double))]] = double;
using HalfVec [[gnu::vector_size(kWideLanes * sizeof(Real))]] = Real;

// Exponents of the largest value of a column, see BlockBound::in_range.
constexpr long kLeastExponent = 30;
constexpr long kUnitExponent = 32;
constexpr long kMostExponent = 34;

WideVec load_wide(const double* from) {
  WideVec x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

void store_wide(WideVec x, double* to) { __builtin_memcpy(to, &x, sizeof x); }

double* row(Matrix<double> x, int i) { return x.data + i * x.pitch; }
Real* row(MatrixRef x, int i) { return x.data + i * x.pitch; }

/// Numbers near 0 become 0: arithmetic with subnormal ones would take a hundred times as long.
class FlushSubnormals {
 public:
#if defined(__x86_64__)
  FlushSubnormals() : before_(__builtin_ia32_stmxcsr()) {
    constexpr unsigned kResultsAndOperands = 0x8040;
    __builtin_ia32_ldmxcsr(before_ | kResultsAndOperands);
  }
  ~FlushSubnormals() { __builtin_ia32_ldmxcsr(before_); }
#else
  FlushSubnormals() = default;
  ~FlushSubnormals() {}
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  [[maybe_unused]] unsigned before_ = 0;
};

/// 2^exponent, which must be that of a normal number.
double power(long exponent) {
  const unsigned long bits = static_cast<unsigned long>(exponent + 1023) << 52;
  double x = 0;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

/// e for x in [2^e, 2^(e+1)).
long exponent_of(double x) {
  unsigned long bits = 0;
  __builtin_memcpy(&bits, &x, sizeof x);
  return static_cast<long>(bits >> 52) - 1023;
}

WideVec larger(WideVec x, WideVec y) { return x > y ? x : y; }
WideVec magnitude(WideVec x) { return x < 0 ? -x : x; }

void store_narrow(WideVec x, Real* to) {
  const HalfVec half = __builtin_convertvector(x, HalfVec);
  __builtin_memcpy(to, &half, sizeof half);
}

WideVec load_widened(const Real* from) {
  HalfVec x;
  __builtin_memcpy(&x, from, sizeof x);
  return __builtin_convertvector(x, WideVec);
}

/// The state of a head in f32, in the units of its columns, and blocks of it.
class NarrowHead {
 public:
  /// What stays from block to block comes first.
  NarrowHead(Arena& arena, int K, int V)
      : K_(K), V_(V), all_K_(whole_vectors(K)), all_V_(whole_vectors(V)) {
    parity_ = arena.vector(kPadding);
    inverse_ = wide_vector(arena, V);
    columns_ = wide_vector(arena, V);
    largest_ = arena.vector(V);
    for (State& state : states_) {
      MatrixRef* matrices[] = {&state.S, &state.P, &state.Gamma};
      for (MatrixRef* x : matrices) *x = arena.matrix(K, V);
    }
  }

  void load_state(const Wide& wide) {
    *parity_ = 0;
    double* values = columns_;
    double* variances = inverse_;
    for (int v = 0; v < all_V_; ++v) values[v] = variances[v] = 0;
    for (int c = 0; c < K_; ++c) {
      raise(values, row(wide.S, c));
      raise(values, row(wide.Gamma, c));
      raise(variances, row(wide.P, c));
    }
    for (int v = 0; v < all_V_; ++v) {
      const double deviation = __builtin_sqrt(variances[v]);
      const double most = values[v] > deviation ? values[v] : deviation;
      inverse_[v] = 1;
      if (most > 0) set_unit(v, most);
      const double in_units = most * inverse_[v];
      largest_[v] = static_cast<Real>(in_units * in_units);
    }
    const State& state = states_[0];
    for (int c = 0; c < K_; ++c) {
      const double* from[] = {row(wide.S, c), row(wide.P, c), row(wide.Gamma, c)};
      Real* to[] = {row(state.S, c), row(state.P, c), row(state.Gamma, c)};
      for (int v = 0; v < all_V_; v += kWideLanes) {
        const WideVec inverse = load_wide(inverse_ + v);
        store_narrow(load_wide(from[0] + v) * inverse, to[0] + v);
        store_narrow(load_wide(from[1] + v) * inverse * inverse, to[1] + v);
        store_narrow(load_wide(from[2] + v) * inverse, to[2] + v);
      }
    }
  }

  void store_state(Wide& wide) const {
    const State& state = states_[index()];
    for (int c = 0; c < K_; ++c) {
      const Real* from[] = {row(state.S, c), row(state.P, c), row(state.Gamma, c)};
      double* to[] = {row(wide.S, c), row(wide.P, c), row(wide.Gamma, c)};
      for (int v = 0; v < all_V_; v += kWideLanes) {
        const WideVec unit = 1 / load_wide(inverse_ + v);
        store_wide(load_widened(from[0] + v) * unit, to[0] + v);
        store_wide(load_widened(from[1] + v) * unit * unit, to[1] + v);
        store_wide(load_widened(from[2] + v) * unit, to[2] + v);
      }
    }
  }

  /// `memory` is what `arena` hands out of; what is left of it is scratch.
  bool advance(Wide& wide, const WideFactors& factors, Arena& arena, Real* memory) {
    BoundBlock block = make_block(arena, wide);
    fit_units(wide);
    read(wide, factors.scale, block);
    if (!KDA_ISA::advance(block, narrow_factors(factors), memory + arena.used())) return false;
    for (int i = 0; i < wide.tokens; ++i) {
      const Real* from = row(block.sigma_o, i);
      double* to = row(wide.sigma_o, i);
      const double scale = __builtin_fabs(factors.scale);
      for (int v = 0; v < all_V_; v += kWideLanes) {
        store_wide(load_widened(from + v) / load_wide(inverse_ + v) * scale, to + v);
      }
    }
    wide.state_changed = block.state_changed;
    if (!block.state_changed) return true;
    for (int v = 0; v < all_V_; ++v) largest_[v] = block.largest[v];
    *parity_ = 1 - *parity_;
    return true;
  }

  /// Inputs and results of a block, without their contents.
  BoundBlock make_block(Arena& arena, const Wide& wide) const {
    BoundBlock b{};
    b.tokens = wide.tokens;
    b.K = K_;
    b.V = V_;
    MatrixRef* by_channel[] = {&b.q, &b.k, &b.log_decay, &b.gate_error};
    for (MatrixRef* x : by_channel) *x = arena.matrix(b.tokens, K_);
    MatrixRef* by_column[] = {&b.v, &b.o, &b.sigma_o};
    for (MatrixRef* x : by_column) *x = arena.matrix(b.tokens, V_);
    Real** columns[] = {&b.underflow.operands, &b.underflow.sums, &b.underflow.state,
                        &b.underflow.output,   &b.largest,        &b.least};
    for (Real** x : columns) *x = arena.vector(V_);
    b.beta = arena.vector(b.tokens);
    return b;
  }

 private:
  struct State {
    MatrixRef S, P, Gamma;
  };

  static int whole_vectors(int columns) { return static_cast<int>(up_to(columns, kLanes)); }

  /// Two f32 hold one f64.
  static double* wide_vector(Arena& arena, int size) {
    return static_cast<double*>(static_cast<void*>(arena.vector(2 * up_to(size, kPadding))));
  }

  /// Of the current state in states_.
  [[nodiscard]] int index() const { return *parity_ == 0 ? 0 : 1; }

  void raise(double* most, const double* row) const {
    for (int v = 0; v < all_V_; v += kWideLanes) {
      store_wide(larger(load_wide(most + v), magnitude(load_wide(row + v))), most + v);
    }
  }

  /// For a column with this largest value. Where there is no such unit it stays, and the block will
  /// leave the range.
  void set_unit(int v, double most) {
    const long exponent = exponent_of(most);
    if (exponent > -900 && exponent < 900) inverse_[v] = power(kUnitExponent - exponent);
  }

  /// New units for the columns that need them, for the values of the block too.
  void fit_units(const Wide& wide) {
    double* values = columns_;
    for (int v = 0; v < all_V_; ++v) values[v] = 0;
    for (int i = 0; i < wide.tokens; ++i) raise(values, row(wide.v, i));
    bool changed = false;
    double* factors = columns_;
    for (int v = 0; v < all_V_; ++v) {
      const double state = __builtin_sqrt(double{largest_[v]}) / inverse_[v];
      const double most = values[v] > state ? values[v] : state;
      const long exponent = exponent_of(most * inverse_[v]);
      const double before = inverse_[v];
      if (most > 0 && (exponent < kLeastExponent || exponent > kMostExponent)) set_unit(v, most);
      factors[v] = inverse_[v] / before;
      changed = changed || factors[v] != 1;
    }
    if (!changed) return;
    const State& state = states_[index()];
    for (int v = 0; v < all_V_; ++v) largest_[v] *= static_cast<Real>(factors[v] * factors[v]);
    for (int c = 0; c < K_; ++c) {
      for (int v = 0; v < all_V_; v += kWideLanes) {
        const WideVec factor = load_wide(factors + v);
        Real* rows[] = {row(state.S, c) + v, row(state.Gamma, c) + v, row(state.P, c) + v};
        store_narrow(load_widened(rows[0]) * factor, rows[0]);
        store_narrow(load_widened(rows[1]) * factor, rows[1]);
        store_narrow(load_widened(rows[2]) * factor * factor, rows[2]);
      }
    }
  }

  void read(const Wide& wide, double scale, BoundBlock& b) const {
    const auto copy = [this](Matrix<double> from, MatrixRef to, int i) {
      const double* x = row(from, i);
      Real* y = row(to, i);
      for (int c = 0; c < all_K_; c += kWideLanes) store_narrow(load_wide(x + c), y + c);
    };
    for (int i = 0; i < b.tokens; ++i) {
      copy(wide.q, b.q, i);
      copy(wide.k, b.k, i);
      copy(wide.log_decay, b.log_decay, i);
      copy(wide.gate_error, b.gate_error, i);
      const double* values = row(wide.v, i);
      for (int v = 0; v < all_V_; v += kWideLanes) {
        store_narrow(load_wide(values + v) * load_wide(inverse_ + v), row(b.v, i) + v);
      }
      b.beta[i] = static_cast<Real>(wide.beta[i]);
    }
    for (int v = 0; v < all_V_; v += kWideLanes) {
      const WideVec inverse2 = load_wide(inverse_ + v) * load_wide(inverse_ + v);
      const auto in_units = [&](const double* from, double factor, Real* to) {
        store_narrow(load_wide(from + v) * inverse2 * factor, to + v);
      };
      in_units(wide.underflow.operands, 1, b.underflow.operands);
      in_units(wide.underflow.sums, 1, b.underflow.sums);
      in_units(wide.underflow.state, 1, b.underflow.state);
      in_units(wide.underflow.output, 1 / (scale * scale), b.underflow.output);
    }
    b.repeated = wide.repeated;
    b.prefix_sums = wide.prefix_sums;
    b.has_error = wide.has_error;
    b.watch_echoes = wide.watch_echoes;
    b.watch_scores = wide.watch_scores;
    const State& before = states_[index()];
    const State& after = states_[1 - index()];
    b.S = before.S;
    b.P = before.P;
    b.Gamma = before.Gamma;
    b.S_next = after.S;
    b.P_next = after.P;
    b.Gamma_next = after.Gamma;
  }

  /// The scale of o is left out: its square might leave the range.
  static BoundFactors narrow_factors(const WideFactors& f) {
    const auto real = [](double x) { return static_cast<Real>(x); };
    return {.rho_operands = real(f.rho_operands),
            .rho_triangle = real(f.rho_triangle),
            .rho_solve = real(f.rho_solve),
            .rho_accumulation = real(f.rho_accumulation),
            .rho_state = real(f.rho_state),
            .rho_output = real(f.rho_output),
            .gate_unit = real(f.gate_unit),
            .state_stall = real(f.state_stall),
            .sum_roundings = real(f.sum_roundings),
            .underflow = real(f.underflow),
            .sum_underflow = real(f.sum_underflow),
            .scale = 1};
  }

  int K_;
  int V_;
  int all_K_;  ///< with the zeros that fill the last vector
  int all_V_;
  Real* parity_;     ///< 0 or 1: which of states_ is the current one
  double* inverse_;  ///< [V] 1 / unit
  double* columns_;  ///< [V] scratch
  Real* largest_;    ///< [V] of S^2, P and Gamma^2 together, in units
  State states_[2]{};
};

long bytes(int tokens, int K, int V) {
  Arena arena(nullptr);
  const NarrowHead head(arena, K, V);
  Wide wide{};
  wide.tokens = tokens;
  head.make_block(arena, wide);
  return (arena.used() + scratch_size(tokens, K, V)) * static_cast<long>(sizeof(Real));
}

void load_state(const Wide& wide, void* scratch) {
  const FlushSubnormals flush;
  Arena arena(static_cast<Real*>(scratch));
  NarrowHead(arena, wide.K, wide.V).load_state(wide);
}

bool advance_narrow(Wide& wide, const WideFactors& factors, void* scratch) {
  const FlushSubnormals flush;
  Arena arena(static_cast<Real*>(scratch));
  NarrowHead head(arena, wide.K, wide.V);
  return head.advance(wide, factors, arena, static_cast<Real*>(scratch));
}

void store_state(Wide& wide, void* scratch) {
  Arena arena(static_cast<Real*>(scratch));
  NarrowHead(arena, wide.K, wide.V).store_state(wide);
}

}  // namespace
}  // namespace KDA_ISA

extern const VarianceKernel KDA_VARIANCE_KERNEL{KDA_ISA::bytes, KDA_ISA::load_state,
                                                KDA_ISA::advance_narrow, KDA_ISA::store_state};

}  // namespace kda::reference
