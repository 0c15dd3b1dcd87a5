#include "reference/activated.hpp"

#include "reference/gate.hpp"

#include <cmath>
#include <cstring>

namespace kda::reference {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// `count` elements from `from` on, next to each other. The dtype is settled outside the loop,
/// which the compiler then vectorises.
template <class Stored, class Convert>
void convert(const std::byte* from, std::int64_t count, double* to, Convert as_double) {
  for (std::int64_t i = 0; i < count; ++i) {
    Stored value{};
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    to[i] = as_double(value);
  }
}

void load_row(const TensorView& x, std::int64_t offset, std::int64_t count, std::int64_t stride,
              double* to) {
  const std::byte* from = x.data + offset * size_of(x.dtype);
  if (stride == 1 && x.dtype == Dtype::kBf16) {
    convert<Bf16>(from, count, to, [](Bf16 value) { return double{to_float(value)}; });
  } else if (stride == 1 && x.dtype == Dtype::kF32) {
    convert<float>(from, count, to, [](float value) { return double{value}; });
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = load(x, offset + i * stride);
  }
}

/// Tokens [t, t + count) of batch row b and one head of a tensor [B,T,heads,width].
void load_rows(const TensorView& x, std::int64_t b, std::int64_t t, std::int64_t head,
               std::int64_t count, std::vector<double>& rows) {
  const std::int64_t width = x.shape[3];
  rows.resize(index(count * width));
  const std::int64_t first = b * x.strides[0] + t * x.strides[1] + head * x.strides[2];
  for (std::int64_t i = 0; i < count; ++i) {
    load_row(x, first + i * x.strides[1], width, x.strides[3], rows.data() + i * width);
  }
}

void normalise_rows(std::int64_t width, std::vector<double>& rows) {
  for (auto row = rows.begin(); row != rows.end(); row += width) {
    double sum = 0;
    for (auto x = row; x != row + width; ++x) sum += *x * *x;
    const double factor = l2_factor(sum);
    for (auto x = row; x != row + width; ++x) *x *= factor;
  }
}

}  // namespace

ActivatedReader::ActivatedReader(const Problem& problem, const Semantics& semantics)
    : problem_(problem), semantics_(semantics) {
  if (semantics.gate == GateForm::kLogDecay) return;
  A_log_ = problem.A_log ? to_f64(*problem.A_log) : std::vector<double>(index(semantics.HV));
  dt_bias_ = problem.dt_bias ? to_f64(*problem.dt_bias)
                             : std::vector<double>(index(semantics.HV * semantics.K));
}

void ActivatedReader::read(const Sequence& sequence, std::int64_t hv, std::int64_t first,
                           std::int64_t count, ActivatedRows& rows) const {
  const std::int64_t h = hv / (semantics_.HV / semantics_.H);
  const std::int64_t t = sequence.begin + first;
  load_rows(problem_.q, sequence.b, t, h, count, rows.q);
  load_rows(problem_.k, sequence.b, t, h, count, rows.k);
  load_rows(problem_.v, sequence.b, t, hv, count, rows.v);
  load_rows(problem_.g, sequence.b, t, hv, count, rows.log_decay);
  if (semantics_.qk_norm == QkNorm::kL2) {
    normalise_rows(semantics_.K, rows.q);
    normalise_rows(semantics_.K, rows.k);
  }
  if (semantics_.gate != GateForm::kLogDecay) apply_gate(hv, rows.log_decay);

  const TensorView& beta = problem_.beta;
  rows.beta.resize(index(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t offset =
        sequence.b * beta.strides[0] + (t + i) * beta.strides[1] + hv * beta.strides[2];
    rows.beta[index(i)] = write_strength(load(beta, offset), semantics_.beta);
  }
}

void ActivatedReader::apply_gate(std::int64_t hv, std::vector<double>& log_decay) const {
  const auto K = index(semantics_.K);
  const double A_log = A_log_[index(hv)];
  const double* bias = dt_bias_.data() + index(hv) * K;
  for (std::size_t i = 0; i < log_decay.size(); ++i) {
    const double y = log_decay[i] + bias[i % K];
    log_decay[i] = semantics_.gate == GateForm::kSoftplus
                       ? softplus_gate(y, A_log)
                       : lower_bound_gate(y, A_log, semantics_.lower_bound);
  }
}

std::vector<double> ActivatedReader::initial_state(std::int64_t n, std::int64_t hv) const {
  const std::int64_t V = semantics_.V;
  std::vector<double> S(index(semantics_.K * V), 0.0);
  if (!problem_.initial_state) return S;
  const TensorView& x = *problem_.initial_state;
  const bool k_first = semantics_.state_layout == StateLayout::kKV;
  const std::int64_t k_stride = k_first ? x.strides[2] : x.strides[3];
  const std::int64_t v_stride = k_first ? x.strides[3] : x.strides[2];
  for (std::int64_t k = 0; k < semantics_.K; ++k) {
    load_row(x, n * x.strides[0] + hv * x.strides[1] + k * k_stride, V, v_stride, S.data() + k * V);
  }
  return S;
}

void store_state(const double* S, std::int64_t i, std::int64_t hv, const Semantics& semantics,
                 Tensor& states) {
  const std::int64_t K = semantics.K;
  const std::int64_t V = semantics.V;
  const bool k_first = semantics.state_layout == StateLayout::kKV;
  const std::int64_t first = (i * semantics.HV + hv) * K * V;
  for (std::int64_t k = 0; k < K; ++k) {
    for (std::int64_t v = 0; v < V; ++v) {
      states.store(first + (k_first ? k * V + v : v * K + k), S[k * V + v]);
    }
  }
}

}  // namespace kda::reference
