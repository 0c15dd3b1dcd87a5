#include "harness/mutate/token_loop.hpp"

#include <cmath>
#include <utility>

namespace kda::harness::mutate {
namespace {

template <class Real>
class TokenLoop {
 public:
  TokenLoop(const Activated& a, TokenFault fault, Precision precision)
      : a_(a),
        s_(a.semantics),
        fault_(fault),
        K_(static_cast<std::size_t>(s_.K)),
        V_(static_cast<std::size_t>(s_.V)),
        out_(empty_outputs(a, precision)),
        last_(K_ * V_, 0) {}

  Outputs run() && {
    for (std::int64_t n = 0; n < static_cast<std::int64_t>(a_.spans.size()); ++n) {
      for (std::int64_t hv = 0; hv < s_.HV; ++hv) run_head(n, hv);
    }
    return std::move(out_);
  }

 private:
  using State = std::vector<Real>;

  [[nodiscard]] bool is(TokenFault fault) const { return fault_ == fault; }

  [[nodiscard]] State initial(std::int64_t n, std::int64_t hv) const {
    if (is(TokenFault::kStaleSequence) && n > 0) return last_;
    if (is(TokenFault::kStaleHead) && hv > 0) return last_;
    const auto from = a_.state.begin() + static_cast<std::ptrdiff_t>(a_.at_state(n, hv));
    State S(K_ * V_);
    for (std::size_t i = 0; i < S.size(); ++i) {
      S[i] = static_cast<Real>(from[static_cast<std::ptrdiff_t>(i)]);
    }
    return S;
  }

  void run_head(std::int64_t n, std::int64_t hv) {
    const Span& span = a_.spans[static_cast<std::size_t>(n)];
    State S = initial(n, hv);
    State final = S;
    for (std::int64_t t = 0; t < span.length(); ++t) {
      if (t > 0 && t % s_.chunk == 0) at_chunk(n, hv, S);
      keep_h(span, t, hv, S);
      if (t + 1 == span.length() && is(TokenFault::kFinalBeforeLast)) final = S;
      step(span.begin + t, hv, S);
      if (t + 1 == s_.chunk && is(TokenFault::kFinalOfFirstChunk)) final = S;
    }
    keep_late_h(span, hv, S);
    last_ = S;
    const bool kept = is(TokenFault::kFinalBeforeLast) ||
                      (is(TokenFault::kFinalOfFirstChunk) && span.length() > s_.chunk);
    if (out_.final_state) put_state(*out_.final_state, n, hv, s_, kept ? final : S);
  }

  void at_chunk(std::int64_t n, std::int64_t hv, State& S) const {
    if (is(TokenFault::kLostAtChunk)) S.assign(S.size(), 0);
    if (is(TokenFault::kInitialAtChunk)) S = initial(n, hv);
    if (is(TokenFault::kStateBf16Chunk)) round_bf16(S);
  }

  void keep_h(const Span& span, std::int64_t t, std::int64_t hv, const State& S) {
    if (!out_.h) return;
    const std::int64_t chunk = span.first_chunk + t / s_.chunk;
    if (is(TokenFault::kHAfterChunk)) {
      if (t > 0 && t % s_.chunk == 0) put_state(*out_.h, chunk - 1, hv, s_, S);
    } else if (t % s_.chunk == (is(TokenFault::kHOneLate) && t > 0 ? 1 : 0)) {
      put_state(*out_.h, chunk, hv, s_, S);
    }
  }

  void keep_late_h(const Span& span, std::int64_t hv, const State& S) {
    if (!out_.h || !is(TokenFault::kHAfterChunk) || span.length() == 0) return;
    put_state(*out_.h, span.first_chunk + (span.length() - 1) / s_.chunk, hv, s_, S);
  }

  static void round_bf16(State& S) {
    for (Real& x : S) x = static_cast<Real>(rounded(Dtype::kBf16, static_cast<double>(x)));
  }

  void decay(State& S, std::size_t g) const {
    for (std::size_t k = 0; k < K_; ++k) {
      for (std::size_t v = 0; v < V_; ++v) {
        const std::size_t channel = is(TokenFault::kDecayOnValues) ? v % K_ : k;
        S[k * V_ + v] *= std::exp(static_cast<Real>(a_.g[g + channel]));
      }
    }
  }

  /// x^T S for x at `at` of `from`.
  [[nodiscard]] State read(const std::vector<double>& from, std::size_t at, const State& S) const {
    State sum(V_, 0);
    for (std::size_t k = 0; k < K_; ++k) {
      const auto x = static_cast<Real>(from[at + k]);
      for (std::size_t v = 0; v < V_; ++v) sum[v] += x * S[k * V_ + v];
    }
    return sum;
  }

  void write(std::size_t at_k, Real beta, const State& delta, State& S) const {
    for (std::size_t k = 0; k < K_; ++k) {
      const Real x = beta * static_cast<Real>(a_.k[at_k + k]);
      for (std::size_t v = 0; v < V_; ++v) S[k * V_ + v] += x * delta[v];
    }
  }

  /// v - u, and beta with it.
  State difference(std::size_t at_v, const State& u, Real& beta) const {
    State delta(V_);
    for (std::size_t v = 0; v < V_; ++v) {
      const auto value = static_cast<Real>(a_.v[at_v + v]);
      delta[v] = is(TokenFault::kBetaOnValueOnly) ? beta * value - u[v] : value - u[v];
      if (is(TokenFault::kNoPrediction)) delta[v] = value;
      if (is(TokenFault::kDeltaBf16)) {
        delta[v] = static_cast<Real>(rounded(Dtype::kBf16, static_cast<double>(delta[v])));
      }
    }
    if (is(TokenFault::kBetaOnValueOnly)) beta = 1;
    if (is(TokenFault::kBetaTwice)) beta *= beta;
    return delta;
  }

  void step(std::int64_t row, std::int64_t hv, State& S) {
    const std::size_t at_k = a_.at_k(row, hv);
    const State before = is(TokenFault::kOutputLate) ? S : State{};
    const bool late = is(TokenFault::kDecayAfterUpdate);
    const bool early_read = late || is(TokenFault::kPredictUndecayed);
    const auto& predictor = is(TokenFault::kQueryPredicts) ? a_.q : a_.k;
    State u;
    if (early_read) u = read(predictor, at_k, S);
    if (!late) decay(S, at_k);
    if (!early_read) u = read(predictor, at_k, S);
    const State unwritten = is(TokenFault::kOutputBeforeUpdate) ? S : State{};
    auto beta = static_cast<Real>(a_.beta[a_.at(row, hv)]);
    const State delta = difference(a_.at_v(row, hv), u, beta);
    write(at_k, beta, delta, S);
    if (late) decay(S, at_k);
    if (is(TokenFault::kStateBf16)) round_bf16(S);
    put_row(row, hv,
            is(TokenFault::kOutputLate)           ? before
            : is(TokenFault::kOutputBeforeUpdate) ? unwritten
                                                  : S);
  }

  void put_row(std::int64_t row, std::int64_t hv, const State& S) {
    const std::size_t at_k = a_.at_k(row, hv);
    State o(V_, 0);
    if (is(TokenFault::kOutputSumBf16)) {
      for (std::size_t k = 0; k < K_; ++k) {
        for (std::size_t v = 0; v < V_; ++v)
          o[v] += static_cast<Real>(a_.q[at_k + k]) * S[k * V_ + v];
        round_bf16(o);
      }
    } else {
      o = read(a_.q, at_k, S);
    }
    for (std::size_t v = 0; v < V_; ++v) {
      out_.o.store(static_cast<std::int64_t>(a_.at_v(row, hv) + v),
                   static_cast<double>(static_cast<Real>(s_.scale) * o[v]));
    }
  }

  const Activated& a_;
  const Semantics& s_;
  TokenFault fault_;
  std::size_t K_;
  std::size_t V_;
  Outputs out_;
  State last_;  ///< of the head that ran last
};

}  // namespace

Outputs run_tokens(const Activated& a, TokenFault fault, Precision precision) {
  if (precision == Precision::kF64) return TokenLoop<double>(a, fault, precision).run();
  return TokenLoop<float>(a, fault, precision).run();
}

}  // namespace kda::harness::mutate
