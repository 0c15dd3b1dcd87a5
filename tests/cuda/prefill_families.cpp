#include "tests/cuda/prefill_families.hpp"

#include "reference/fast.hpp"
#include "reference/recurrent.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace kda::tests {
namespace {

constexpr std::int64_t kWidth = 128;

constexpr std::array kFamilies{
    PrefillFamily{.name = "no decay", .T = 512, .gates = Gates::kNone},
    PrefillFamily{.name = "slow gate", .T = 512},
    PrefillFamily{.name = "gate uniform in [-5, 0]", .T = 512, .gates = Gates::kUniform},
    PrefillFamily{.name = "gate -5", .T = 256, .gates = Gates::kMinus5},
    PrefillFamily{.name = "gate -200 softplus", .T = 256, .gates = Gates::kSteep},
    PrefillFamily{.name = "resets, 5% of tokens", .T = 512, .gates = Gates::kResets},
    PrefillFamily{.name = "resets by channel", .T = 512, .gates = Gates::kChannelResets},
    PrefillFamily{.name = "channels 1e-6 ... 1e3", .T = 512, .gates = Gates::kDecades},
    PrefillFamily{.name = "v columns 1e-4 ... 1e4", .T = 512, .values = Values::kDecades},
    PrefillFamily{.name = "beta 0", .T = 512, .beta = 0},
    PrefillFamily{
        .name = "state 1e-6 ... 1e6", .T = 512, .gates = Gates::kDecades, .state_decades = true},
    PrefillFamily{.name = "v 1e5 once, half reset",
                  .T = 512,
                  .gates = Gates::kHalfReset,
                  .values = Values::kOneLarge},
    PrefillFamily{.name = "random keys, beta up to 2",
                  .T = 512,
                  .beta = -2,
                  .limit = 1.3,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "random keys, beta 2, no decay",
                  .T = 2048,
                  .gates = Gates::kNone,
                  .beta = 2,
                  .limit = 1.3,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "identical keys, beta .9",
                  .T = 2048,
                  .keys = Keys::kIdentical,
                  .gates = Gates::kNone,
                  .beta = 0.9,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "the same, v constant",
                  .T = 2048,
                  .keys = Keys::kIdentical,
                  .gates = Gates::kNone,
                  .beta = 0.9,
                  .values = Values::kConstant,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "keys within 10%, beta 1",
                  .T = 1024,
                  .keys = Keys::kNear,
                  .noise = 0.1,
                  .beta = 1,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "keys within 1%, beta 1",
                  .T = 1024,
                  .keys = Keys::kNear,
                  .noise = 0.01,
                  .beta = 1,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "alternating keys, beta 1.5",
                  .T = 512,
                  .keys = Keys::kAlternating,
                  .beta = 1.5,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "keys within 10%, beta 1.98",
                  .T = 512,
                  .keys = Keys::kNear,
                  .noise = 0.1,
                  .beta = 1.98,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "keys within 1%, beta 1.98",
                  .T = 512,
                  .keys = Keys::kNear,
                  .noise = 0.01,
                  .beta = 1.98,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "keys within 1%, beta 2",
                  .T = 512,
                  .keys = Keys::kNear,
                  .noise = 0.01,
                  .beta = 2,
                  .limit = 2.5,
                  .state_limit = 8e-3},
    PrefillFamily{.name = "identical keys, beta 2",
                  .T = 512,
                  .keys = Keys::kIdentical,
                  .gates = Gates::kNone,
                  .beta = 2,
                  .limit = 8,
                  .state_limit = 0},
    PrefillFamily{.name = "the same, v constant",
                  .T = 512,
                  .keys = Keys::kIdentical,
                  .gates = Gates::kNone,
                  .beta = 2,
                  .values = Values::kConstant,
                  .limit = 8,
                  .state_limit = 0},
};

/// Numbers by stream, seed (head) and index: none depends on T.
class Numbers {
 public:
  explicit Numbers(std::uint64_t stream) : stream_(stream) {}

  [[nodiscard]] double uniform(std::int64_t head, std::int64_t index) const {
    std::uint64_t z = (stream_ << 40) + (static_cast<std::uint64_t>(head) << 32) +
                      static_cast<std::uint64_t>(index);
    for (int round = 0; round < 2; ++round) {
      z += 0x9E3779B97F4A7C15U;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
      z ^= z >> 31;
    }
    return static_cast<double>(z >> 11) * 0x1p-53;
  }
  /// Deviation 1, never beyond 6: the sum of twelve.
  [[nodiscard]] double normal(std::int64_t head, std::int64_t index) const {
    double sum = -6;
    for (std::int64_t i = 0; i < 12; ++i) sum += uniform(head, index * 12 + i);
    return sum;
  }

 private:
  std::uint64_t stream_;
};

using Row = std::array<double, kWidth>;

void to_length(double length, Row& row) {
  double square = 0;
  for (const double x : row) square += x * x;
  for (double& x : row) x *= length / std::sqrt(square);
}

Row random_row(const Numbers& numbers, std::int64_t head, std::int64_t t) {
  Row row;
  for (std::int64_t c = 0; c < kWidth; ++c) {
    row[static_cast<std::size_t>(c)] = numbers.normal(head, t * kWidth + c);
  }
  return row;
}

Row key(const PrefillFamily& family, std::int64_t head, std::int64_t t) {
  const Numbers common(1);
  const Numbers own(2);
  Row row = random_row(family.keys == Keys::kRandom ? own : common, head,
                       family.keys == Keys::kRandom ? t : 0);
  to_length(family.keys == Keys::kAlternating && t % 2 == 1 ? -1 : 1, row);
  if (family.keys == Keys::kNear) {
    Row noise = random_row(own, head, t);
    to_length(family.noise, noise);
    for (std::size_t c = 0; c < row.size(); ++c) row[c] += noise[c];
    to_length(1, row);
  }
  return row;
}

double log_decay(Gates gates, std::int64_t T, std::int64_t head, std::int64_t t, std::int64_t k) {
  const Numbers numbers(3);
  const Numbers resets(4);
  const double slow = -1e-4 * (1 + numbers.uniform(head, t * kWidth + k));
  switch (gates) {
    case Gates::kNone: return 0;
    case Gates::kSlow: return slow;
    case Gates::kUniform: return -5 * numbers.uniform(head, t * kWidth + k);
    case Gates::kMinus5: return -5;
    case Gates::kSteep: {
      const double y = numbers.normal(head, t * kWidth + k);
      return -200 * std::log1p(std::exp(y));
    }
    case Gates::kResets: return resets.uniform(head, t) < 0.05 ? -1000 : slow;
    case Gates::kChannelResets: return resets.uniform(head, t * kWidth + k) < 0.05 ? -2000 : slow;
    case Gates::kDecades: return -std::pow(10.0, static_cast<double>(k % 10 - 6));
    case Gates::kHalfReset: return t == T / 2 && k % 2 == 0 ? -1000 : slow;
  }
  return 0;
}

Row value(Values values, std::int64_t T, std::int64_t head, std::int64_t t) {
  const Numbers numbers(5);
  Row row = random_row(numbers, head, values == Values::kConstant ? 0 : t);
  for (std::size_t v = 0; v < row.size(); ++v) {
    const auto column = static_cast<std::int64_t>(v);
    if (values == Values::kConstant) {
      row[v] += 0.01 * Numbers(6).normal(head, t * kWidth + column);
    }
    if (values == Values::kDecades) row[v] *= std::pow(10.0, static_cast<double>(column % 9 - 4));
    if (values == Values::kOneLarge && t == T / 2 - 1) row[v] *= 1e5;
  }
  return row;
}

struct Sums {
  double error = 0;
  double size = 0;
  void add(double got, double want) {
    error += (got - want) * (got - want);
    size += want * want;
  }
  /// NaN for a result that is none.
  [[nodiscard]] double relative() const { return std::sqrt(error / size); }
};

/// Relative RMS of o, by head.
std::vector<double> errors_of_o(const Outputs& got, const Outputs& exact) {
  const Shape& shape = exact.o.shape();
  const std::vector<double> a = to_f64(got.o.view());
  const double* b = exact.o.as<double>();
  std::vector<Sums> heads(static_cast<std::size_t>(shape[2]));
  for (std::size_t i = 0; i < a.size(); ++i) {
    heads[i / static_cast<std::size_t>(shape[3]) % heads.size()].add(a[i], b[i]);
  }
  std::vector<double> errors;
  for (const Sums& sums : heads) errors.push_back(sums.relative());
  return errors;
}

double worst_state(const Tensor& got, const Tensor& exact) {
  const std::size_t size = kWidth * kWidth;
  const std::vector<double> a = to_f64(got.view());
  double worst = 0;
  for (std::size_t first = 0; first < a.size(); first += size) {
    Sums sums;
    for (std::size_t i = first; i < first + size; ++i) sums.add(a[i], exact.as<double>()[i]);
    const double error = sums.relative();
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

/// NaN counts as infinite.
double median(std::vector<double> values) {
  for (double& x : values) {
    if (std::isnan(x)) x = std::numeric_limits<double>::infinity();
  }
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::span<const PrefillFamily> prefill_families() { return kFamilies; }

KdaInputs make_family(const PrefillFamily& family, std::int64_t seeds, std::int64_t T) {
  if (T == 0) T = family.T;
  KdaInputs inputs =
      zeros({.B = 1, .T = T, .H = seeds, .HV = seeds, .K = kWidth, .V = kWidth}, Dtype::kBf16);
  const Numbers query(7);
  const Numbers state(8);
  const Numbers strength(9);
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t head = 0; head < seeds; ++head) {
      const std::int64_t row = t * seeds + head;
      const Row k = key(family, head, t);
      Row q = random_row(query, head, t);
      to_length(1, q);
      const Row v = value(family.values, T, head, t);
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const auto i = static_cast<std::size_t>(c);
        inputs.q.store(row * kWidth + c, q[i]);
        inputs.k.store(row * kWidth + c, k[i]);
        inputs.v.store(row * kWidth + c, v[i]);
        inputs.g.store(row * kWidth + c, log_decay(family.gates, T, head, t, c));
      }
      inputs.beta.store(row,
                        family.beta >= 0 ? family.beta : -family.beta * strength.uniform(head, t));
    }
  }
  inputs.initial_state = Tensor(Dtype::kF32, {1, seeds, kWidth, kWidth});
  fill(*inputs.initial_state, [&](std::int64_t i) {
    const std::int64_t k = i / kWidth % kWidth;
    const double size =
        family.state_decades ? std::pow(10.0, static_cast<double>(k % 13 - 6)) : 0.25;
    return size * state.normal(i / (kWidth * kWidth), i % (kWidth * kWidth));
  });
  return inputs;
}

FamilyJudge::FamilyJudge(KdaInputs inputs)
    : inputs_(std::move(inputs)),
      semantics_(check(Contract::kKdaPrefill, inputs_.problem())),
      exact_(reference::fast(inputs_.problem(), semantics_)),
      peer_(errors_of_o(reference::recurrent_f32(inputs_.problem(), semantics_), exact_)) {}

FamilyErrors FamilyJudge::judge(const Compute& compute) const {
  const Outputs got = compute(inputs_.problem(), semantics_);
  const std::vector<double> errors = errors_of_o(got, exact_);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < errors.size(); ++i) ratios.push_back(errors[i] / peer_[i]);
  return {.o = median(errors),
          .o_in_peers = median(ratios),
          .worst_state = std::max(worst_state(*got.h, *exact_.h),
                                  worst_state(*got.final_state, *exact_.final_state))};
}

}  // namespace kda::tests
