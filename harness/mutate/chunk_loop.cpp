#include "harness/mutate/chunk_loop.hpp"

#include "harness/mutate/chunk_factors.hpp"

#include <algorithm>
#include <utility>

namespace kda::harness::mutate {
namespace {

template <class Real>
class ChunkLoop {
 public:
  ChunkLoop(const Activated& a, ChunkFault fault, Precision precision)
      : a_(a),
        s_(a.semantics),
        fault_(fault),
        round_(precision == Precision::kF64 ? Dtype::kF64 : a.operands),
        out_(empty_outputs(a, precision)) {}

  Outputs run() && {
    for (std::int64_t n = 0; n < static_cast<std::int64_t>(a_.spans.size()); ++n) {
      for (std::int64_t hv = 0; hv < s_.HV; ++hv) run_head(n, hv);
    }
    return std::move(out_);
  }

 private:
  using Mat = Matrix<Real>;

  [[nodiscard]] bool is(ChunkFault fault) const { return fault_ == fault; }

  void run_head(std::int64_t n, std::int64_t hv) {
    const Span& span = a_.spans[static_cast<std::size_t>(n)];
    Mat S(s_.K, s_.V);
    const auto from = a_.state.begin() + static_cast<std::ptrdiff_t>(a_.at_state(n, hv));
    std::transform(from, from + s_.K * s_.V, S.data.begin(),
                   [](double x) { return static_cast<Real>(x); });
    Mat before = S;
    inverse_ = Mat();
    gate_so_far_.assign(static_cast<std::size_t>(s_.K), 0);
    for (std::int64_t t = 0; t < span.length(); t += s_.chunk) {
      const std::int64_t tokens = std::min(s_.chunk, span.length() - t);
      if (tokens < s_.chunk && is(ChunkFault::kTailDropped)) break;
      if (!is(ChunkFault::kHAfterChunk)) keep_h(span, t, hv, S);
      const Mat old = S;
      S = run_chunk({span.begin + t, tokens, t > 0}, hv, seen(S, before, t));
      before = old;
      if (is(ChunkFault::kHAfterChunk)) keep_h(span, t, hv, S);
    }
    if (!out_.final_state) return;
    put_state(*out_.final_state, n, hv, s_,
              is(ChunkFault::kFinalOneChunkEarly) ? before.data : S.data);
  }

  void keep_h(const Span& span, std::int64_t t, std::int64_t hv, const Mat& S) {
    if (out_.h) put_state(*out_.h, span.first_chunk + t / s_.chunk, hv, s_, S.data);
  }

  /// The state that a chunk sees.
  [[nodiscard]] Mat seen(const Mat& S, const Mat& before, std::int64_t t) const {
    if (t == 0) return S;
    if (is(ChunkFault::kStateNotCarried)) return Mat(s_.K, s_.V);
    if (is(ChunkFault::kStateOneChunkOld)) return before;
    if (is(ChunkFault::kStateTransposed) && s_.K == s_.V) return transposed(S);
    return S;
  }

  struct Rows {
    std::int64_t begin;
    std::int64_t tokens;
    bool later;  ///< not the first of its head
  };

  Mat run_chunk(const Rows& rows, std::int64_t hv, const Mat& S) {
    std::int64_t tokens = rows.tokens;
    if (is(ChunkFault::kTailRows)) tokens = std::min(s_.chunk, a_.rows - rows.begin);
    ChunkRows<Real> x(a_, rows.begin, tokens, hv);
    if (is(ChunkFault::kLastRowLost) && tokens == s_.chunk) x.beta.back() = 0;
    if (is(ChunkFault::kGateNotReset)) add_gate_so_far(x);
    const Decays<Real> decays(x, fault_);
    Factors<Real> f = factorise(x, decays, fault_);
    if (is(ChunkFault::kStaleInverse)) {
      if (inverse_.rows == f.T.rows) f.T = inverse_;
      inverse_ = f.T;
    }
    const Mat R = pseudo_values(x, f, S);
    put_rows(rows, hv, output(f, R, S));
    return next_state(rows, hv, {x, decays, R, S});
  }

  /// G runs on: what the chunks before have summed up comes on top of the first row.
  void add_gate_so_far(ChunkRows<Real>& x) {
    for (std::int64_t c = 0; c < s_.K; ++c) {
      Real& so_far = gate_so_far_[static_cast<std::size_t>(c)];
      Real sum = so_far;
      for (std::int64_t i = 0; i < x.g.rows; ++i) sum += x.g(i, c);
      x.g(0, c) += so_far;
      so_far = sum;
    }
  }

  [[nodiscard]] Mat rounded_operand(Mat x) const {
    if (round_ == Dtype::kF64 || round_ == Dtype::kF32) return x;
    for (Real& value : x.data) value = static_cast<Real>(rounded(round_, value));
    return x;
  }

  [[nodiscard]] Mat pseudo_values(const ChunkRows<Real>& x, const Factors<Real>& f,
                                  const Mat& S) const {
    Mat difference = x.v;
    if (!is(ChunkFault::kNoOldState)) {
      const Mat& k = is(ChunkFault::kPredictUndecayed) ? x.k : f.k_decayed;
      subtract(difference, product(rounded_operand(k), rounded_operand(S)));
    }
    return product(rounded_operand(f.T), rounded_operand(std::move(difference)));
  }

  [[nodiscard]] Mat output(const Factors<Real>& f, const Mat& R, const Mat& S) const {
    const Mat& q = is(ChunkFault::kReadUndecayed) ? f.q : f.q_decayed;
    Mat o = product(rounded_operand(q), rounded_operand(S));
    if (!is(ChunkFault::kWritesUnread)) add(o, product(rounded_operand(f.Q), rounded_operand(R)));
    return o;
  }

  void put_rows(const Rows& rows, std::int64_t hv, const Mat& o) {
    for (std::int64_t i = 0; i < std::min(rows.tokens, o.rows); ++i) {
      if (is(ChunkFault::kLastRowLost) && i + 1 == s_.chunk) break;
      for (std::int64_t v = 0; v < s_.V; ++v) {
        out_.o.store(static_cast<std::int64_t>(a_.at_v(rows.begin + i, hv)) + v,
                     static_cast<double>(static_cast<Real>(s_.scale) * o(i, v)));
      }
    }
  }

  struct Update {
    const ChunkRows<Real>& x;
    const Decays<Real>& decays;
    const Mat& R;
    const Mat& old;
  };

  [[nodiscard]] Mat next_state(const Rows& rows, std::int64_t hv, const Update& u) const {
    Mat k = keys_at_end(u.x, u.decays, fault_);
    if (is(ChunkFault::kLastRowNotWritten) && k.rows == s_.chunk) {
      for (std::int64_t c = 0; c < s_.K; ++c) k(k.rows - 1, c) = 0;
    }
    Mat S = product(transposed(rounded_operand(std::move(k))), rounded_operand(u.R));
    const std::vector<Real> through = decay_through(u.decays, rows, hv);
    for (std::int64_t c = 0; c < s_.K; ++c) {
      for (std::int64_t v = 0; v < s_.V; ++v) {
        S(c, v) += through[static_cast<std::size_t>(c)] * u.old(c, v);
        if (is(ChunkFault::kStateBf16)) {
          S(c, v) = static_cast<Real>(rounded(Dtype::kBf16, static_cast<double>(S(c, v))));
        }
      }
    }
    return S;
  }

  /// exp(G_n), channel by channel.
  [[nodiscard]] std::vector<Real> decay_through(const Decays<Real>& decays, const Rows& rows,
                                                std::int64_t hv) const {
    if (is(ChunkFault::kStateNotDecayed)) {
      return std::vector<Real>(static_cast<std::size_t>(s_.K), 1);
    }
    std::vector<Real> through = decays.through();
    if (!is(ChunkFault::kTailDecay)) return through;
    const std::int64_t end = std::min(rows.begin + s_.chunk, a_.rows);
    for (std::int64_t row = rows.begin + rows.tokens; row < end; ++row) {
      for (std::size_t c = 0; c < through.size(); ++c) {
        through[c] *= std::exp(static_cast<Real>(a_.g[a_.at_k(row, hv) + c]));
      }
    }
    return through;
  }

  const Activated& a_;
  const Semantics& s_;
  ChunkFault fault_;
  Dtype round_;
  Outputs out_;
  Mat inverse_;                    ///< of the head's chunk before
  std::vector<Real> gate_so_far_;  ///< [K]
};

}  // namespace

Outputs run_chunks(const Activated& a, ChunkFault fault, Precision precision) {
  if (precision == Precision::kF64) return ChunkLoop<double>(a, fault, precision).run();
  return ChunkLoop<float>(a, fault, precision).run();
}

}  // namespace kda::harness::mutate
