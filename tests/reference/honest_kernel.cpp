#include "tests/reference/honest_kernel.hpp"

#include "reference/gate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <Eigen/Dense>

namespace kda::tests {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Row = Eigen::RowVectorXf;

float round_to(Round format, float x) {
  switch (format) {
    case Round::kNone: return x;
    case Round::kBf16: return to_float(to_bf16(x));
    case Round::kF16: return to_float(to_f16(x));
    case Round::kBf16Pair: {
      const float high = to_float(to_bf16(x));
      return high + to_float(to_bf16(x - high));
    }
  }
  return x;
}

Matrix round_to(Round format, const Matrix& x) {
  return x.unaryExpr([format](float value) { return round_to(format, value); });
}

/// std::exp by element: Eigen's own packet exponential of f32 has errors of one sign near 0.
Matrix exp(const Matrix& x) {
  return x.unaryExpr([](float value) { return std::exp(value); });
}

/// Inputs of some tokens of one value head after the activations, which are all done in f32.
struct Block {
  Matrix q, k, v, g;
  Eigen::VectorXf beta;
};

class Reader {
 public:
  Reader(const Problem& problem, const Semantics& semantics) : p_(problem), s_(semantics) {
    if (problem.A_log) A_log_ = to_f64(*problem.A_log);
    if (problem.dt_bias) dt_bias_ = to_f64(*problem.dt_bias);
  }

  [[nodiscard]] Block read(const Sequence& sequence, std::int64_t hv, std::int64_t first,
                           std::int64_t count) const {
    const std::int64_t h = hv / (s_.HV / s_.H);
    const std::int64_t t = sequence.begin + first;
    Block x{rows(p_.q, sequence.b, t, h, count, s_.K), rows(p_.k, sequence.b, t, h, count, s_.K),
            rows(p_.v, sequence.b, t, hv, count, s_.V), rows(p_.g, sequence.b, t, hv, count, s_.K),
            Eigen::VectorXf(count)};
    if (s_.qk_norm == QkNorm::kL2) {
      for (Eigen::Index i = 0; i < count; ++i) {
        x.q.row(i) *= reference::l2_factor(x.q.row(i).squaredNorm());
        x.k.row(i) *= reference::l2_factor(x.k.row(i).squaredNorm());
      }
    }
    for (Eigen::Index i = 0; i < count; ++i) {
      for (Eigen::Index c = 0; c < s_.K; ++c) x.g(i, c) = log_decay(x.g(i, c), hv, c);
      const std::int64_t at =
          sequence.b * p_.beta.strides[0] + (t + i) * p_.beta.strides[1] + hv * p_.beta.strides[2];
      x.beta(i) = reference::write_strength(static_cast<float>(load(p_.beta, at)), s_.beta);
    }
    return x;
  }

  [[nodiscard]] Matrix initial_state(std::int64_t n, std::int64_t hv) const {
    Matrix S = Matrix::Zero(s_.K, s_.V);
    if (!p_.initial_state) return S;
    const TensorView& x = *p_.initial_state;
    const bool k_first = s_.state_layout == StateLayout::kKV;
    for (Eigen::Index k = 0; k < s_.K; ++k) {
      for (Eigen::Index v = 0; v < s_.V; ++v) {
        const std::int64_t at = n * x.strides[0] + hv * x.strides[1] +
                                (k_first ? k : v) * x.strides[2] + (k_first ? v : k) * x.strides[3];
        S(k, v) = static_cast<float>(load(x, at));
      }
    }
    return S;
  }

 private:
  static Matrix rows(const TensorView& x, std::int64_t b, std::int64_t t, std::int64_t head,
                     std::int64_t count, std::int64_t width) {
    Matrix out(count, width);
    for (Eigen::Index i = 0; i < count; ++i) {
      for (Eigen::Index c = 0; c < width; ++c) {
        out(i, c) = static_cast<float>(load(
            x, b * x.strides[0] + (t + i) * x.strides[1] + head * x.strides[2] + c * x.strides[3]));
      }
    }
    return out;
  }

  /// As exact as f32 has it; -inf becomes the least gate that adds up without NaN.
  [[nodiscard]] float log_decay(float g, std::int64_t hv, std::int64_t c) const {
    if (s_.gate == GateForm::kLogDecay) return std::max(g, -1000.0F);
    const auto head = static_cast<std::size_t>(hv);
    const auto at = static_cast<std::size_t>(hv * s_.K + c);
    const auto bias = dt_bias_.empty() ? 0.0F : static_cast<float>(dt_bias_[at]);
    const auto A_log = A_log_.empty() ? 0.0F : static_cast<float>(A_log_[head]);
    return s_.gate == GateForm::kSoftplus
               ? reference::softplus_gate(g + bias, A_log)
               : reference::lower_bound_gate(g + bias, A_log, static_cast<float>(s_.lower_bound));
  }

  const Problem& p_;
  const Semantics& s_;
  std::vector<double> A_log_;
  std::vector<double> dt_bias_;
};

/// The chunk's scores: blocks of 16 rows meet earlier keys at the border between both, each decayed
/// to it and rounded; inside a block the key is decayed to the row.
struct Scores {
  Matrix A;
  Matrix Q;
};

Scores make_scores(const Block& x, const Matrix& G, Round operands) {
  const Eigen::Index n = x.k.rows();
  Scores s{Matrix::Zero(n, n), Matrix::Zero(n, n)};
  for (Eigen::Index i = 0; i < n; ++i) {
    const Eigen::Index border = i / 16 * 16;
    for (Eigen::Index j = 0; j <= i; ++j) {
      Row k_i = x.k.row(i);
      Row q_i = x.q.row(i);
      Row k_j = x.k.row(j);
      if (j < border) {
        const Row to_border = exp(G.row(border - 1) - G.row(j));
        const Row from_border = exp(G.row(i) - G.row(border - 1));
        k_j = k_j.cwiseProduct(to_border);
        k_i = k_i.cwiseProduct(from_border);
        q_i = q_i.cwiseProduct(from_border);
      } else {
        k_j = k_j.cwiseProduct(Row(exp(G.row(i) - G.row(j))));
      }
      const Matrix key = round_to(operands, Matrix(k_j));
      if (j < i) s.A(i, j) = round_to(operands, Matrix(k_i)).row(0).dot(key.row(0));
      s.Q(i, j) = round_to(operands, Matrix(q_i)).row(0).dot(key.row(0));
    }
  }
  return s;
}

/// One chunk; S becomes the state after it. Returns o.
Matrix advance_chunk(const HonestKernel& kernel, const Block& x, float scale, Matrix& S) {
  const Eigen::Index n = x.k.rows();
  const Round op = kernel.operands;
  Matrix G = x.g;
  for (Eigen::Index i = 1; i < n; ++i) G.row(i) += G.row(i - 1);
  const Scores scores = make_scores(x, G, op);
  Matrix L = Matrix::Identity(n, n);
  L += x.beta.asDiagonal() * scores.A;
  const Matrix T =
      round_to(kernel.triangle,
               Matrix(L.triangularView<Eigen::UnitLower>().solve(Matrix(x.beta.asDiagonal()))));
  const Matrix kE = round_to(op, Matrix(x.k.cwiseProduct(exp(G))));
  const Matrix qE = round_to(op, Matrix(x.q.cwiseProduct(exp(G))));
  const Matrix state = round_to(op, S);
  Matrix U;
  if (kernel.form == ChunkForm::kT) {
    U = T * round_to(kernel.triangle, Matrix(x.v - kE * state));
  } else {
    const Matrix W = round_to(op, Matrix(T * kE));
    U = round_to(op, Matrix(T * round_to(op, x.v))) - W * state;
  }
  const Matrix written = round_to(op, U);
  const Matrix to_end = exp(Matrix((-G).rowwise() + Row(G.row(n - 1))));
  const Matrix Kd = round_to(op, Matrix(x.k.cwiseProduct(to_end)));
  const Matrix O = scale * (qE * state + round_to(op, scores.Q) * written);
  const Row E_n = exp(G.row(n - 1));
  S = round_to(kernel.state, Matrix(E_n.asDiagonal() * S + Kd.transpose() * written));
  return O;
}

/// One token, nothing rounded but the state.
Matrix advance_token(const HonestKernel& kernel, const Block& x, float scale, Matrix& S) {
  S = Row(exp(x.g.row(0))).asDiagonal() * S;
  const Row w = x.beta(0) * (x.v.row(0) - x.k.row(0) * S);
  S += x.k.row(0).transpose() * w;
  const Matrix O = scale * (x.q.row(0) * S);
  S = round_to(kernel.state, S);
  return O;
}

void store(const Matrix& S, std::int64_t slot, std::int64_t hv, const Semantics& s, Tensor& to) {
  for (Eigen::Index k = 0; k < s.K; ++k) {
    for (Eigen::Index v = 0; v < s.V; ++v) {
      const std::int64_t at = s.state_layout == StateLayout::kKV ? k * s.V + v : v * s.K + k;
      to.store((slot * s.HV + hv) * s.K * s.V + at, S(k, v));
    }
  }
}

reference::Rounding rounding_of(Round format) {
  switch (format) {
    case Round::kNone: break;
    case Round::kBf16: return reference::kRoundBf16;
    case Round::kF16: return reference::kRoundF16;
    case Round::kBf16Pair: return reference::kRoundBf16Pair;
  }
  return reference::kRoundF32;
}

}  // namespace

Outputs run(const HonestKernel& kernel, const Problem& problem, const Semantics& semantics) {
  const Semantics& s = semantics;
  const Reader reader(problem, s);
  Outputs out;
  out.o = Tensor(kernel.output, s.o_shape());
  if (s.final_state) out.final_state = Tensor(Dtype::kF32, s.state_shape(s.N()));
  if (s.chunk_states) out.h = Tensor(Dtype::kF32, s.state_shape(s.num_chunks));
  const auto scale = static_cast<float>(s.scale);
  for (std::int64_t task = 0; task < s.N() * s.HV; ++task) {
    const std::int64_t n = task / s.HV;
    const std::int64_t hv = task % s.HV;
    const Sequence& sequence = s.sequences[static_cast<std::size_t>(n)];
    Matrix S = reader.initial_state(n, hv);
    for (std::int64_t t = 0; t < sequence.length();) {
      if (out.h && t % s.chunk == 0) store(S, sequence.first_chunk + t / s.chunk, hv, s, *out.h);
      const std::int64_t count =
          std::min({kernel.chunk, sequence.length() - t, s.chunk - t % s.chunk});
      const Block x = reader.read(sequence, hv, t, count);
      const Matrix O = kernel.chunk == 1 ? advance_token(kernel, x, scale, S)
                                         : advance_chunk(kernel, x, scale, S);
      const std::int64_t row = sequence.b * s.T + sequence.begin + t;
      for (Eigen::Index i = 0; i < count; ++i) {
        for (Eigen::Index v = 0; v < s.V; ++v) {
          out.o.store(((row + i) * s.HV + hv) * s.V + v, O(i, v));
        }
      }
      t += count;
    }
    if (out.final_state) store(S, n, hv, s, *out.final_state);
  }
  return out;
}

reference::Formats formats_of(const HonestKernel& kernel) {
  const Dtype operands = kernel.operands == Round::kBf16  ? Dtype::kBf16
                         : kernel.operands == Round::kF16 ? Dtype::kF16
                                                          : Dtype::kF32;
  reference::Formats formats = reference::default_formats(operands, kernel.output);
  formats.triangle = rounding_of(kernel.triangle);
  formats.state = rounding_of(kernel.state);
  if (kernel.chunk == 1 && kernel.state != Round::kNone) {
    formats.state_storage = reference::StateStorage::kPerToken;
  }
  return formats;
}

std::vector<HonestKernel> honest_kernels() {
  const Round none = Round::kNone;
  const Dtype f32 = Dtype::kF32;
  return {
      {.name = "recurrent f32", .chunk = 1, .operands = none, .triangle = none, .output = f32},
      {.name = "chunk 64 f32", .operands = none, .triangle = none, .output = f32},
      {.name = "chunk 64 bf16"},
      {.name = "chunk 32 bf16", .chunk = 32},
      {.name = "chunk 16 bf16", .chunk = 16},
      {.name = "WY 64 bf16", .form = ChunkForm::kWY},
      {.name = "chunk 32 bf16, T in two parts", .chunk = 32, .triangle = Round::kBf16Pair},
      {.name = "chunk 64 f16",
       .operands = Round::kF16,
       .triangle = Round::kF16,
       .output = Dtype::kF16},
      {.name = "WY 64 bf16, bf16 state", .form = ChunkForm::kWY, .state = Round::kBf16},
      {.name = "recurrent, bf16 state",
       .chunk = 1,
       .operands = none,
       .triangle = none,
       .state = Round::kBf16,
       .output = f32},
  };
}

}  // namespace kda::tests
