#include "reference/variance_gate.hpp"

#include "reference/gate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kda::reference {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Stands for -inf, which a kernel that adds log decays has to clamp somewhere: exp of it is 0 in
/// every format.
constexpr double kLeastLogDecay = -1000;
/// Slopes near the end of the exponent range would make inf * 0 of an error that does not matter.
constexpr double kLargestError = 1e15;
/// Below this, exp(g) is 0 beside anything that f32 adds to it, and its rounding does not matter.
constexpr double kRepeatable = -40;

/// Of a gate that comes as a log decay.
double of_log_decay(double log_decay) {
  return log_decay >= -std::numeric_limits<double>::max() ? std::abs(log_decay) : -kLeastLogDecay;
}

/// Rounding of exp(g) that has one sign for every small g in few bits: 1 + g is a number of the
/// format, and the g^2 / 2 above it is less than a step and lost. In units of the roundoff.
double lost_of_exp(double g, double unit) {
  const double steps = g / unit;
  return steps == std::nearbyint(steps) ? std::min(1.0, g * g / unit) : 0;
}

double limited(double error) { return error < kLargestError ? error : kLargestError; }

}  // namespace

GateError::GateError(const Problem& problem, const Semantics& semantics, double unit,
                     bool one_sided)
    : problem_(problem), semantics_(semantics), unit_(unit), one_sided_(one_sided) {
  if (semantics.gate == GateForm::kLogDecay) return;
  if (problem.A_log) A_log_ = to_f64(*problem.A_log);
  if (problem.dt_bias) dt_bias_ = to_f64(*problem.dt_bias);
}

double GateError::of_activation(double raw, double log_decay, std::int64_t hv,
                                std::size_t channel) const {
  const auto head = index(hv);
  const double A_log = A_log_.empty() ? 0 : A_log_[head];
  const double bias = dt_bias_.empty() ? 0 : dt_bias_[head * index(semantics_.K) + channel];
  const double y = raw + bias;
  const double terms = std::abs(raw) + std::abs(bias);
  if (semantics_.gate == GateForm::kSoftplus) {
    // exp(A_log) sigmoid(y), without an exponential of its own that may overflow.
    const double slope =
        y < 0 ? std::exp(A_log + y) / (1 + std::exp(y)) : std::exp(A_log) / (1 + std::exp(-y));
    return std::abs(log_decay) * (4 + std::abs(A_log)) + slope * terms;
  }
  const double open = 1 - log_decay / semantics_.lower_bound;  // 1 - sigmoid(exp(A_log) y)
  if (!(open > 0)) return std::abs(log_decay) * 4;
  return std::abs(log_decay) * (4 + open * std::exp(A_log) * terms * (3 + std::abs(A_log)));
}

void GateError::read(const Sequence& sequence, std::int64_t hv, std::int64_t first,
                     std::int64_t count, const std::vector<double>& log_decay,
                     const std::vector<double>& before, std::vector<double>& error) const {
  const auto K = index(semantics_.K);
  error.resize(index(count) * K);
  const TensorView& g = problem_.g;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at =
        sequence.b * g.strides[0] + (sequence.begin + first + i) * g.strides[1] + hv * g.strides[2];
    const double* row = log_decay.data() + index(i) * K;
    double* errors = error.data() + index(i) * K;
    const auto single = [&](std::size_t c) {
      if (semantics_.gate == GateForm::kLogDecay) return of_log_decay(row[c]);
      const double raw = load(g, at + static_cast<std::int64_t>(c) * g.strides[3]);
      return of_activation(raw, std::max(row[c], kLeastLogDecay), hv, c);
    };
    const double* previous = i > 0 ? row - K : before.data();
    const bool first_token = i == 0 && before.empty();
    for (std::size_t c = 0; c < K; ++c) {
      // A constant decay repeats the rounding of exp(g); that of exp(0) = 1 is none.
      const bool repeated = !first_token && previous[c] == row[c];
      const bool rounds = row[c] > kRepeatable && row[c] != 0;
      const double alike = repeated || one_sided_ ? 1 : lost_of_exp(row[c], unit_);
      errors[c] = limited(single(c) + (rounds ? alike : 0));
    }
  }
}

}  // namespace kda::reference
