#include "reference/peer_prefill.hpp"

#include "reference/activated.hpp"
#include "reference/peer_factors.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kda::reference {
namespace {

using peer::ChunkInputs;
using peer::Factors;
using peer::kChunk;
using peer::Matrix;
using peer::Operand;
using peer::product;
using peer::round_to;
using peer::ScaledRows;
using peer::transposed;
using peer::Vector;

Tensor to_tensor(const Matrix& x) {
  Tensor tensor(Dtype::kF32, {x.rows(), x.cols()});
  std::copy_n(x.data(), x.size(), tensor.as<float>());
  return tensor;
}

/// The power of two that brings the largest element of a row into [0.5, 1); 1 for a row of zeros.
float row_scale(const Matrix& x, Eigen::Index row) {
  const float largest = x.row(row).cwiseAbs().maxCoeff();
  int exponent = 0;
  if (largest > 0 && std::isfinite(largest)) static_cast<void>(std::frexp(largest, &exponent));
  return std::ldexp(1.F, -exponent);
}

class PeerChunks {
 public:
  PeerChunks(const Problem& problem, const Semantics& semantics, const PeerFormats& formats,
             const PeerSink& sink)
      : reader_(problem, semantics), s_(semantics), formats_(formats), sink_(sink) {
    out_.o = Tensor(problem.v.dtype, s_.o_shape());
    if (s_.final_state) out_.final_state = Tensor(Dtype::kF32, s_.state_shape(s_.N()));
    if (s_.chunk_states) out_.h = Tensor(Dtype::kF32, s_.state_shape(s_.num_chunks));
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
    const std::vector<double> initial = reader_.initial_state(n, hv);
    using Stored = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Matrix S = Eigen::Map<const Stored>(initial.data(), s_.K, s_.V).cast<float>();
    for (std::int64_t begin = 0; begin < sequence.length(); begin += kChunk) {
      if (out_.h) keep_state(S, sequence.first_chunk + begin / kChunk, hv, *out_.h);
      PeerStages stages;
      stages.n = n;
      stages.hv = hv;
      stages.begin = begin;
      stages.tokens = std::min<std::int64_t>(kChunk, sequence.length() - begin);
      const ChunkInputs x = read(sequence, hv, begin, stages.tokens);
      const Matrix O = advance(x, S, stages);
      for (std::int64_t i = 0; i < stages.tokens; ++i) {
        const std::int64_t row = sequence.b * s_.T + sequence.begin + begin + i;
        for (std::int64_t v = 0; v < s_.V; ++v) {
          out_.o.store((row * s_.HV + hv) * s_.V + v, double{O(i, v)});
        }
      }
      if (sink_) sink_(stages);
    }
    if (out_.final_state) keep_state(S, n, hv, *out_.final_state);
  }

  ChunkInputs read(const Sequence& sequence, std::int64_t hv, std::int64_t begin,
                   std::int64_t tokens) {
    constexpr double kLog2e = 1.44269504088896340736;
    reader_.read(sequence, hv, begin, tokens, rows_);
    const auto matrix = [&](const std::vector<double>& rows, std::int64_t width) {
      Matrix x = Matrix::Zero(kChunk, width);
      for (std::int64_t i = 0; i < tokens * width; ++i) {
        x.data()[i] = static_cast<float>(rows[static_cast<std::size_t>(i)]);
      }
      return x;
    };
    for (double& g : rows_.log_decay) g *= kLog2e;
    ChunkInputs x{.q = matrix(rows_.q, s_.K),
                  .k = matrix(rows_.k, s_.K),
                  .v = matrix(rows_.v, s_.V),
                  .g_log2 = matrix(rows_.log_decay, s_.K),
                  .beta = matrix(rows_.beta, 1),
                  .key_scale = Vector::Ones(kChunk),
                  .query_scale = Vector::Ones(kChunk)};
    if (s_.qk_norm == QkNorm::kL2) return x;
    for (Eigen::Index i = 0; i < kChunk; ++i) {
      x.key_scale(i) = row_scale(x.k, i);
      x.query_scale(i) = row_scale(x.q, i);
      x.k.row(i) *= x.key_scale(i);
      x.q.row(i) *= x.query_scale(i);
      x.v.row(i) *= x.key_scale(i);
      x.beta(i) /= x.key_scale(i) * x.key_scale(i);
    }
    return x;
  }

  /// One chunk; S [K,V] becomes the state after it.
  Matrix advance(const ChunkInputs& x, Matrix& S, PeerStages& stages) const {
    const Factors f = factorise(x, formats_);
    const Matrix before = S;

    // S is held with columns of V as rows: one scale for each.
    const ScaledRows S_rows = scaled(formats_.S, S.transpose());
    const Operand S_read = transposed(round_to(formats_.S, S_rows.scaled));
    const auto of_state = [&](const Operand& gated) -> Matrix {
      return f.token_unscale.asDiagonal() * product(gated, S_read) * S_rows.unscale.asDiagonal();
    };
    const Matrix P = of_state(f.Kg);
    const Matrix R = x.v - P;
    const Matrix U = product(round_to(formats_.T, f.T), round_to(formats_.R, R));
    const Matrix from_scores = product(round_to(formats_.Q, f.Q), round_to(formats_.U_read, U));
    const Vector out_scale = static_cast<float>(s_.scale) * x.query_scale.cwiseInverse();
    Matrix O = out_scale.asDiagonal() * (of_state(f.Qg) + from_scores);

    const auto [U_scaled, U_unscale] = scaled(formats_.U_written, U.transpose());
    const Operand U_written = transposed(round_to(formats_.U_written, U_scaled));
    const Matrix written = f.channel_unscale.transpose().asDiagonal() *
                           product(transposed(f.Kd), U_written) * U_unscale.asDiagonal();
    const Matrix added = written + f.decay.transpose().asDiagonal() * S;
    S = added + f.keep.transpose().asDiagonal() * S;
    if (sink_) describe(x, f, {P, R, U, O, before, S}, stages);
    return O;
  }

  static ScaledRows scaled(OperandFormat format, const Matrix& x) {
    if (format == OperandFormat::kF16) return peer::scale_rows(x);
    return {x, Vector::Ones(x.rows())};
  }

  struct ChainStages {
    const Matrix& P;
    const Matrix& R;
    const Matrix& U;
    const Matrix& O;
    const Matrix& S;
    const Matrix& S_next;
  };

  /// Every scale taken out again; all are powers of two, so nothing is rounded.
  static void describe(const ChunkInputs& x, const Factors& f, const ChainStages& chain,
                       PeerStages& stages) {
    const Vector of_key = x.key_scale.cwiseInverse();
    const Vector of_query = x.query_scale.cwiseInverse();
    const auto by_key = [&](const Matrix& m) { return to_tensor(of_key.asDiagonal() * m); };
    stages.k = by_key(x.k);
    stages.q = to_tensor(of_query.asDiagonal() * x.q);
    stages.beta = Tensor(Dtype::kF32, {kChunk});
    for (Eigen::Index i = 0; i < kChunk; ++i) {
      stages.beta.as<float>()[i] = x.beta(i) * x.key_scale(i) * x.key_scale(i);
    }
    stages.A = to_tensor(of_key.asDiagonal() * f.A * of_key.asDiagonal());
    stages.Q = to_tensor(of_query.asDiagonal() * f.Q * of_key.asDiagonal());
    stages.X = to_tensor(f.X);
    stages.T = to_tensor(x.key_scale.asDiagonal() * f.T * x.key_scale.asDiagonal());
    const Vector& token = f.token_unscale;
    stages.Kg = by_key(token.asDiagonal() * f.Kg.value());
    stages.Qg = to_tensor(of_query.asDiagonal() * (token.asDiagonal() * f.Qg.value()));
    stages.Kd = by_key(f.Kd.value() * f.channel_unscale.transpose().asDiagonal());
    stages.decay = Tensor(Dtype::kF32, {f.decay.size()});
    std::copy_n(Matrix(f.decay + f.keep).data(), f.decay.size(), stages.decay.as<float>());
    stages.P = by_key(chain.P);
    stages.R = by_key(chain.R);
    stages.U = to_tensor(x.key_scale.asDiagonal() * chain.U);
    stages.O = to_tensor(chain.O);
    stages.S = to_tensor(chain.S);
    stages.S_next = to_tensor(chain.S_next);
  }

  void keep_state(const Matrix& S, std::int64_t i, std::int64_t hv, Tensor& states) const {
    const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> wide =
        S.cast<double>();
    store_state(wide.data(), i, hv, s_, states);
  }

  ActivatedReader reader_;
  const Semantics& s_;
  const PeerFormats& formats_;
  const PeerSink& sink_;
  ActivatedRows rows_;
  Outputs out_;
};

}  // namespace

Outputs peer_prefill(const Problem& problem, const Semantics& semantics, const PeerFormats& formats,
                     const PeerSink& sink) {
  return PeerChunks(problem, semantics, formats, sink).run();
}

}  // namespace kda::reference
