#include "reference/chunked.hpp"

#include "reference/activated.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/Dense>

namespace kda::reference {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;
using Row = Eigen::RowVectorXd;

/// std::exp by element: Eigen's own packet exponential clamps its argument, and exp(-inf) must be
/// 0.
Matrix exp(const Matrix& x) {
  return x.unaryExpr([](double value) { return std::exp(value); });
}

/// Inputs of the tokens of one block.
struct Block {
  Matrix q;     ///< [C,K]
  Matrix k;     ///< [C,K]
  Matrix v;     ///< [C,V]
  Matrix g;     ///< [C,K], log decay
  Vector beta;  ///< [C]
};

/// The tensors of `Stages`, and the two further decays that the state update needs.
struct Factors {
  Matrix G;             ///< [C,K]
  Matrix decay_to_end;  ///< [C,K], exp of the sum of log decays after token i
  Matrix A;             ///< [C,C]
  Matrix Q;             ///< [C,C]
  Matrix T;             ///< [C,C]
  Matrix W;             ///< [C,K]
  Matrix U;             ///< [C,V]
};

/// Column j of A and Q: the sum of log decays grows token by token from j, never from a difference.
void scores(const Block& x, Factors& f) {
  const Eigen::Index C = x.k.rows();
  f.A = Matrix::Zero(C, C);
  f.Q = Matrix::Zero(C, C);
  for (Eigen::Index j = 0; j < C; ++j) {
    Row log_decay = Row::Zero(x.k.cols());
    f.Q(j, j) = x.q.row(j).dot(x.k.row(j));
    for (Eigen::Index i = j + 1; i < C; ++i) {
      log_decay += x.g.row(i);
      const Row decayed_k = x.k.row(j).cwiseProduct(exp(log_decay).row(0));
      f.A(i, j) = x.k.row(i).dot(decayed_k);
      f.Q(i, j) = x.q.row(i).dot(decayed_k);
    }
  }
}

Factors factorise(const Block& x) {
  const Eigen::Index C = x.k.rows();
  Factors f;
  scores(x, f);

  f.G = x.g;
  for (Eigen::Index i = 1; i < C; ++i) f.G.row(i) += f.G.row(i - 1);
  Matrix log_decay_to_end = Matrix::Zero(C, x.g.cols());
  for (Eigen::Index i = C - 1; i-- > 0;) {
    log_decay_to_end.row(i) = log_decay_to_end.row(i + 1) + x.g.row(i + 1);
  }
  f.decay_to_end = exp(log_decay_to_end);

  const Matrix L = Matrix::Identity(C, C) + x.beta.asDiagonal() * f.A;
  f.T = L.triangularView<Eigen::UnitLower>().solve(Matrix(x.beta.asDiagonal()));
  f.W = f.T * x.k.cwiseProduct(exp(f.G));
  f.U = f.T * x.v;
  return f;
}

Tensor to_tensor(const Matrix& x) {
  Tensor tensor(Dtype::kF64, {x.rows(), x.cols()});
  std::copy_n(x.data(), x.size(), tensor.as<double>());
  return tensor;
}

class Chunks {
 public:
  Chunks(const Problem& problem, const Semantics& semantics, const StageSink& sink)
      : reader_(problem, semantics), s_(semantics), sink_(sink) {
    out_.o = Tensor(Dtype::kF64, s_.o_shape());
    if (s_.final_state) out_.final_state = Tensor(Dtype::kF64, s_.state_shape(s_.N()));
    if (s_.chunk_states) out_.h = Tensor(Dtype::kF64, s_.state_shape(s_.num_chunks));
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
    Matrix S = Eigen::Map<const Matrix>(initial.data(), s_.K, s_.V);
    for (std::int64_t begin = 0; begin < sequence.length();) {
      const std::int64_t in_chunk = begin % s_.chunk;
      if (out_.h && in_chunk == 0) {
        store_state(S.data(), sequence.first_chunk + begin / s_.chunk, hv, s_, *out_.h);
      }
      const std::int64_t tokens =
          std::min({kMaxBlock, s_.chunk - in_chunk, sequence.length() - begin});
      const Block x = read(sequence, hv, begin, tokens);
      const Factors f = factorise(x);
      if (sink_)
        sink_({.n = n,
               .hv = hv,
               .begin = begin,
               .tokens = tokens,
               .gate_cumsum = to_tensor(f.G),
               .A = to_tensor(f.A),
               .Q = to_tensor(f.Q),
               .T = to_tensor(f.T),
               .W = to_tensor(f.W),
               .U = to_tensor(f.U),
               .state = to_tensor(S)});

      const Matrix R = f.U - f.W * S;
      const Matrix O = s_.scale * (x.q.cwiseProduct(exp(f.G)) * S + f.Q * R);
      S = exp(f.G.bottomRows(1)).row(0).asDiagonal() * S +
          x.k.cwiseProduct(f.decay_to_end).transpose() * R;
      store_rows(sequence, hv, begin, O);
      begin += tokens;
    }
    if (out_.final_state) store_state(S.data(), n, hv, s_, *out_.final_state);
  }

  Block read(const Sequence& sequence, std::int64_t hv, std::int64_t begin, std::int64_t tokens) {
    reader_.read(sequence, hv, begin, tokens, rows_);
    return {.q = Eigen::Map<const Matrix>(rows_.q.data(), tokens, s_.K),
            .k = Eigen::Map<const Matrix>(rows_.k.data(), tokens, s_.K),
            .v = Eigen::Map<const Matrix>(rows_.v.data(), tokens, s_.V),
            .g = Eigen::Map<const Matrix>(rows_.log_decay.data(), tokens, s_.K),
            .beta = Eigen::Map<const Vector>(rows_.beta.data(), tokens)};
  }

  void store_rows(const Sequence& sequence, std::int64_t hv, std::int64_t begin, const Matrix& O) {
    for (Eigen::Index i = 0; i < O.rows(); ++i) {
      const std::int64_t row = sequence.b * s_.T + sequence.begin + begin + i;
      std::copy_n(O.row(i).data(), s_.V, out_.o.as<double>() + (row * s_.HV + hv) * s_.V);
    }
  }

  ActivatedReader reader_;
  const Semantics& s_;
  const StageSink& sink_;
  ActivatedRows rows_;
  Outputs out_;
};

}  // namespace

Outputs chunked(const Problem& problem, const Semantics& semantics, const StageSink& sink) {
  return Chunks(problem, semantics, sink).run();
}

}  // namespace kda::reference
