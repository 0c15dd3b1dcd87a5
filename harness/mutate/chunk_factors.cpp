#include "harness/mutate/chunk_factors.hpp"

#include <algorithm>

namespace kda::harness::mutate {

template <class Real>
bool Decays<Real>::is_factored() const {
  return fault_ == ChunkFault::kFactored || fault_ == ChunkFault::kFactoredClamped ||
         fault_ == ChunkFault::kFactoredMiddle || fault_ == ChunkFault::kAnchorFuture;
}

template <class Real>
Decays<Real>::Decays(const ChunkRows<Real>& x, ChunkFault fault)
    : fault_(fault),
      step_(x.g.rows, x.g.cols),
      start_(x.g.rows, x.g.cols),
      end_(x.g.rows, x.g.cols) {
  multiply_up(x);
  if (is_factored()) factor(x);
}

template <class Real>
void Decays<Real>::multiply_up(const ChunkRows<Real>& x) {
  const std::int64_t n = x.g.rows;
  for (std::int64_t c = 0; c < x.g.cols; ++c) {
    Real log_sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      step_(i, c) = std::exp(x.g(i, c));
      start_(i, c) = (i > 0 ? start_(i - 1, c) : 1) * step_(i, c);
      if (fault_ != ChunkFault::kGateSumBf16) continue;
      const auto before = static_cast<Real>(rounded(Dtype::kBf16, static_cast<double>(log_sum)));
      log_sum += x.g(i, c);
      const auto sum = static_cast<Real>(rounded(Dtype::kBf16, static_cast<double>(log_sum)));
      start_(i, c) = std::exp(sum);
      step_(i, c) = std::isinf(sum) ? 0 : std::exp(sum - before);
    }
    end_(n - 1, c) = 1;
    for (std::int64_t i = n - 1; i-- > 0;) end_(i, c) = end_(i + 1, c) * step_(i + 1, c);
    if (fault_ != ChunkFault::kGateExclusive) continue;
    for (std::int64_t i = n - 1; i > 0; --i) start_(i, c) = start_(i - 1, c);
    start_(0, c) = 1;
  }
}

/// In f32 whatever Real is: the overflow is the fault.
template <class Real>
void Decays<Real>::factor(const ChunkRows<Real>& x) {
  const std::int64_t n = x.g.rows;
  up_ = Matrix<float>(n, x.g.cols);
  down_ = Matrix<float>(n, x.g.cols);
  const bool middle = fault_ == ChunkFault::kFactoredMiddle || fault_ == ChunkFault::kAnchorFuture;
  for (std::int64_t c = 0; c < x.g.cols; ++c) {
    std::vector<float> G(static_cast<std::size_t>(n));
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += static_cast<float>(x.g(i, c));
      G[static_cast<std::size_t>(i)] = sum;
    }
    const float anchor = middle ? G[static_cast<std::size_t>(n / 2)] : 0.F;
    for (std::int64_t i = 0; i < n; ++i) {
      const float log_up = G[static_cast<std::size_t>(i)] - anchor;
      const float log_down =
          fault_ == ChunkFault::kFactoredClamped ? std::min(80.F, -log_up) : -log_up;
      up_(i, c) = std::exp(log_up);
      down_(i, c) = std::exp(log_down);
    }
  }
}

template <class Real>
Real Decays<Real>::between(std::int64_t i, std::int64_t j, std::int64_t c, Real last) const {
  if (is_factored()) return static_cast<Real>(up_(i, c)) * static_cast<Real>(down_(j, c));
  if (i == j) return 1;
  if (fault_ == ChunkFault::kGateExclusive) return i == j + 1 ? 1 : last * step_(i - 1, c);
  return last * step_(i, c);
}

template <class Real>
std::vector<Real> Decays<Real>::through() const {
  std::vector<Real> all(static_cast<std::size_t>(start_.cols));
  for (std::int64_t c = 0; c < start_.cols; ++c) {
    all[static_cast<std::size_t>(c)] = start_(start_.rows - 1, c);
  }
  return all;
}

namespace {

template <class Real>
struct Scores {
  Matrix<Real> A;
  Matrix<Real> Q;
};

template <class Real>
Real to_bf16_and_back(Real x) {
  return static_cast<Real>(rounded(Dtype::kBf16, static_cast<double>(x)));
}

/// k_i . D k_j and q_i . D k_j of one pair of rows.
template <class Real>
struct Pair {
  Real kk = 0;
  Real qk = 0;
};

/// Both operands are rounded after they met the decay to a row that may lie in their future.
template <class Real>
Pair<Real> anchored_pair(const ChunkRows<Real>& x, const Decays<Real>& decays, std::int64_t i,
                         std::int64_t j) {
  Pair<Real> pair;
  for (std::int64_t c = 0; c < x.k.cols; ++c) {
    const Real key = to_bf16_and_back(decays.down(j, c) * x.k(j, c));
    pair.kk += to_bf16_and_back(decays.up(i, c) * x.k(i, c)) * key;
    pair.qk += to_bf16_and_back(decays.up(i, c) * x.q(i, c)) * key;
  }
  return pair;
}

/// `decay`: exp(G_i - G_j) by channel, from the one of i - 1.
template <class Real>
Pair<Real> decayed_pair(const ChunkRows<Real>& x, const Decays<Real>& decays, std::int64_t i,
                        std::int64_t j, std::vector<Real>& decay) {
  Pair<Real> pair;
  for (std::int64_t c = 0; c < x.k.cols; ++c) {
    Real& d = decay[static_cast<std::size_t>(c)];
    d = decays.between(i, j, c, d);
    const Real key = d * x.k(j, c);
    pair.kk += x.k(i, c) * key;
    pair.qk += x.q(i, c) * key;
  }
  return pair;
}

template <class Real>
Scores<Real> scores(const ChunkRows<Real>& x, const Decays<Real>& decays, ChunkFault fault) {
  const std::int64_t n = x.k.rows;
  Scores<Real> s{Matrix<Real>(n, n), Matrix<Real>(n, n)};
  std::vector<Real> decay(static_cast<std::size_t>(x.k.cols));
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      const Pair<Real> pair = fault == ChunkFault::kAnchorFuture
                                  ? anchored_pair(x, decays, i, j)
                                  : decayed_pair(x, decays, i, j, decay);
      s.Q(i, j) = pair.qk;
      if (i > j || fault == ChunkFault::kKeyMaskInclusive) s.A(i, j) = pair.kk;
      if (i > j && fault == ChunkFault::kQueryUnmasked) s.Q(j, i) = pair.qk;
    }
    if (fault == ChunkFault::kQueryMaskExclusive) s.Q(j, j) = 0;
  }
  return s;
}

/// (I + L)^-1 diag(beta) of a unit lower triangle, row by row. With blocks, nothing between them.
template <class Real>
Matrix<Real> substitute(const Matrix<Real>& L, const std::vector<Real>& beta, std::int64_t block) {
  const std::int64_t n = L.rows;
  Matrix<Real> T(n, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const Real pivot = 1 + L(i, i);  // 1, unless the mask is wrong
    for (std::int64_t j = i / block * block; j <= i; ++j) {
      Real sum = i == j ? beta[static_cast<std::size_t>(i)] : 0;
      for (std::int64_t m = j; m < i; ++m) sum -= L(i, m) * T(m, j);
      T(i, j) = sum / pivot;
    }
  }
  return T;
}

template <class Real>
void round_to(Dtype dtype, Matrix<Real>& x) {
  for (Real& value : x.data) value = static_cast<Real>(rounded(dtype, static_cast<double>(value)));
}

/// (I - L)(I + L^2)(I + L^4)...; `factors` of them, rounded after every step when `half`.
template <class Real>
Matrix<Real> by_products(Matrix<Real> L, const std::vector<Real>& beta, int factors, bool half) {
  const std::int64_t n = L.rows;
  Matrix<Real> inverse(n, n);
  for (std::int64_t i = 0; i < n; ++i) inverse(i, i) = 1;
  subtract(inverse, L);
  Matrix<Real> power = product(L, L);
  for (int f = 1; f < factors; ++f) {
    if (half) round_to(Dtype::kF16, power);
    add(inverse, product(inverse, power));
    if (half) round_to(Dtype::kF16, inverse);
    power = product(power, power);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) inverse(i, j) *= beta[static_cast<std::size_t>(j)];
  }
  return inverse;
}

template <class Real>
Matrix<Real> invert(const Matrix<Real>& A, const std::vector<Real>& beta, ChunkFault fault) {
  constexpr std::int64_t kWhole = 1 << 20;
  Matrix<Real> L = A;
  for (std::int64_t i = 0; i < L.rows; ++i) {
    for (std::int64_t j = 0; j < L.cols; ++j) {
      L(i, j) *= beta[static_cast<std::size_t>(fault == ChunkFault::kStrengthOnColumns ? j : i)];
    }
  }
  switch (fault) {
    case ChunkFault::kNoWriteStrength:
      return substitute(L, std::vector<Real>(beta.size(), 1), kWhole);
    case ChunkFault::kFirstNeumannTerm: return by_products(L, beta, 1, false);
    case ChunkFault::kShortProduct: return by_products(L, beta, 3, false);
    case ChunkFault::kHalfProduct: return by_products(L, beta, 6, true);
    case ChunkFault::kBlockDiagonal: return substitute(L, beta, 16);
    default: return substitute(L, beta, kWhole);
  }
}

}  // namespace

template <class Real>
Factors<Real> factorise(const ChunkRows<Real>& x, const Decays<Real>& decays, ChunkFault fault) {
  Scores<Real> s = scores(x, decays, fault);
  Factors<Real> f;
  f.T = invert(s.A, x.beta, fault);
  f.Q = std::move(s.Q);
  f.q = x.q;
  f.q_decayed = x.q;
  f.k_decayed = x.k;
  for (std::int64_t i = 0; i < x.q.rows; ++i) {
    for (std::int64_t c = 0; c < x.q.cols; ++c) {
      f.q_decayed(i, c) *= decays.from_start(i, c);
      f.k_decayed(i, c) *= decays.from_start(i, c);
    }
  }
  return f;
}

template <class Real>
Matrix<Real> keys_at_end(const ChunkRows<Real>& x, const Decays<Real>& decays, ChunkFault fault) {
  Matrix<Real> k = x.k;
  for (std::int64_t i = 0; i < k.rows; ++i) {
    for (std::int64_t c = 0; c < k.cols; ++c) {
      if (fault == ChunkFault::kKeysUndecayed) continue;
      k(i, c) *=
          fault == ChunkFault::kKeysFromStart ? decays.from_start(i, c) : decays.to_end(i, c);
    }
  }
  return k;
}

template class Decays<float>;
template class Decays<double>;
template Factors<float> factorise(const ChunkRows<float>&, const Decays<float>&, ChunkFault);
template Factors<double> factorise(const ChunkRows<double>&, const Decays<double>&, ChunkFault);
template Matrix<float> keys_at_end(const ChunkRows<float>&, const Decays<float>&, ChunkFault);
template Matrix<double> keys_at_end(const ChunkRows<double>&, const Decays<double>&, ChunkFault);

}  // namespace kda::harness::mutate
