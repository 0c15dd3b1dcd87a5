// What the variance bound must do whatever its constants: follow permutations, scalings and cuts
// exactly, keep zeros, stay finite, and one case by hand. Its values: variance_port.py; that honest
// kernels keep it: variance_honest_test.cpp.

#include "reference/variance.hpp"

#include "reference/recurrent.hpp"
#include "reference/types/error.hpp"
#include "tests/reference/kda_cases.hpp"
#include "tests/reference/repeated_keys.hpp"
#include "tests/reference/z_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using reference::default_formats;
using reference::Deviations;
using reference::Formats;

constexpr double kKappa = 0.4248;

Deviations deviations(const KdaInputs& inputs, const Formats& formats,
                      const reference::FastOptions& options = {}) {
  return reference::deviations(inputs.problem(), inputs.semantics(), formats, options);
}

std::vector<double> values(const Tensor& tensor) { return to_f64(tensor.view()); }

double square(double x) { return x * x; }

double largest(const Tensor& tensor) {
  double most = 0;
  // Not std::max: a NaN must stay.
  for (const double x : values(tensor)) most = x <= most ? most : x;
  return most;
}

/// Largest difference over the larger of both; infinite where one is 0, and for what is not finite.
double difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  const std::vector<double> x = values(a);
  const std::vector<double> y = values(b);
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i]) continue;
    const double d = std::abs(x[i] - y[i]) / std::max(x[i], y[i]);
    most = d <= most ? most : d;
  }
  return most;
}

double difference(const Deviations& a, const Deviations& b) {
  return std::max(
      {difference(a.o, b.o), difference(*a.final_state, *b.final_state), difference(*a.h, *b.h)});
}

Formats bf16() { return default_formats(Dtype::kBf16, Dtype::kBf16); }
Formats f32() { return default_formats(Dtype::kF32, Dtype::kF32); }

/// Without the floors that numbers near the end of the exponent range need.
Formats without_underflow(Formats formats) {
  for (reference::Rounding* rounding :
       {&formats.operands, &formats.triangle, &formats.solve, &formats.accumulation, &formats.gate,
        &formats.state, &formats.output}) {
    rounding->underflow = 0;
  }
  return formats;
}

TEST(Variance, OneTokenOneChannelByHand) {
  constexpr double q = 0.75;
  constexpr double k = 0.5;
  constexpr double v = 3;
  constexpr double beta = 0.25;
  constexpr double scale = 2;
  KdaInputs inputs = zeros({.K = 1, .V = 1}, Dtype::kBf16);
  inputs.q.store(0, q);
  inputs.k.store(0, k);
  inputs.v.store(0, v);
  inputs.g.store(0, -1);
  inputs.beta.store(0, beta);
  inputs.options.scale = scale;
  const Deviations sigma = deviations(inputs, bf16());

  const double op = square(kKappa * 0x1p-8);
  const double sums = (16 + 0.5) * square(kKappa * 0x1p-24);
  const double eta2 = square(0x1p-134) / 3;
  const double flush = square(0x1p-126);
  const double U = beta * v;
  const double pi = eta2 * (k * k + 2 * k * k * U * U);
  const double zeta = beta * beta * (pi + op * v * v + sums * v * v + 2 * op * v * v) +
                      (2 * op + sums) * U * U + eta2 * (1 + beta * beta * v * v);
  const double omega = square(q * k) * (zeta + (op + sums) * U * U) +
                       (2 * op + sums) * square(q * k * U) +
                       eta2 * (q * q + square(q * k) + (k * k + q * q + 1) * U * U);
  const double o = scale * q * k * U;
  const double sigma_o = std::sqrt(scale * scale * omega + (op + sums) * o * o + eta2);
  const double S = k * U;
  const double el = 3 * square(kKappa * 0x1p-24) * (S * S + S * S) + flush;
  const double F = k * k * (zeta + (2 * op + sums) * U * U + flush) + el + eta2 * U * U;
  EXPECT_NEAR(values(sigma.o)[0] / sigma_o, 1, 1e-12);
  // The roundings of f32 sums have an upper limit in their place beside 16-bit operands.
  EXPECT_NEAR(values(*sigma.final_state)[0] / std::sqrt(F), 1, 1e-8);
  EXPECT_EQ(values(*sigma.h)[0], 0);
}

TEST(Variance, LaterTokensChangeNothing) {
  const KdaInputs whole = [] {
    KdaInputs inputs = random_inputs({.T = 130, .H = 1, .HV = 2, .K = 12, .V = 9}, 1);
    inputs.initial_state = random_state(inputs.semantics(), 2);
    return inputs;
  }();
  const Deviations sigma = deviations(whole, f32());
  for (const std::int64_t T : {1, 2, 63, 64, 65, 128}) {
    const Deviations part = deviations(cut(whole, 0, T), f32());
    EXPECT_LE(difference(part.o, tokens(sigma.o, 0, T)), 1e-12) << T;
  }
  // The state before the third chunk is the final state of the first two.
  EXPECT_LE(difference(*deviations(cut(whole, 0, 128), f32()).final_state, slot(*sigma.h, 2)),
            1e-12);
}

TEST(Variance, SequencesAreIndependent) {
  KdaInputs whole = random_inputs({.T = 100, .H = 1, .HV = 2, .K = 8, .V = 8}, 3);
  whole.cu_seqlens = bounds({0, 30, 30, 99});
  whole.initial_state = random_state(whole.semantics(), 4);
  const Deviations sigma = deviations(whole, bf16());
  const std::vector<std::int64_t> begins{0, 30, 30};
  const std::vector<std::int64_t> ends{30, 30, 99};
  for (std::size_t n = 0; n < 3; ++n) {
    KdaInputs solo = cut(whole, begins[n], ends[n]);
    solo.initial_state = slot(*whole.initial_state, static_cast<std::int64_t>(n));
    const Deviations part = deviations(solo, bf16());
    EXPECT_TRUE(same_bits(part.o, tokens(sigma.o, begins[n], ends[n]))) << n;
    EXPECT_TRUE(
        same_bits(*part.final_state, slot(*sigma.final_state, static_cast<std::int64_t>(n))));
  }
  EXPECT_EQ(largest(slot(*sigma.final_state, 1)), 0);  // of an empty sequence
  EXPECT_EQ(largest(tokens(sigma.o, 99, 100)), 0);     // of no sequence
}

/// Element (.., i, j) of the result is element (.., i, columns - 1 - j) of the tensor.
Tensor reverse_last(const Tensor& tensor) {
  Tensor out(tensor.dtype(), tensor.shape());
  const std::int64_t columns = tensor.shape().back();
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    out.store(i / columns * columns + columns - 1 - i % columns, load(tensor.view(), i));
  }
  return out;
}

TEST(Variance, ColumnsAreIndependent) {
  KdaInputs inputs = random_inputs({.T = 70, .K = 9, .V = 21}, 5);
  inputs.initial_state = random_state(inputs.semantics(), 6);
  KdaInputs reversed = inputs;
  reversed.v = reverse_last(inputs.v);
  reversed.initial_state = reverse_last(*inputs.initial_state);
  const Deviations a = deviations(inputs, f32());
  const Deviations b = deviations(reversed, f32());
  EXPECT_TRUE(same_bits(reverse_last(a.o), b.o));
  EXPECT_TRUE(same_bits(reverse_last(*a.final_state), *b.final_state));
}

TEST(Variance, ScalesWithTheValues) {
  for (const Formats& formats : {without_underflow(bf16()), without_underflow(f32())}) {
    KdaInputs inputs = random_inputs({.T = 70, .K = 9, .V = 5}, 7);
    inputs.initial_state = random_state(inputs.semantics(), 8);
    const Deviations sigma = deviations(inputs, formats);
    for (const double factor : {0x1p40, 0x1p-40}) {
      KdaInputs scaled = inputs;
      fill(scaled.v, [&](std::int64_t i) { return factor * load(inputs.v.view(), i); });
      fill(*scaled.initial_state,
           [&](std::int64_t i) { return factor * load(inputs.initial_state->view(), i); });
      const Deviations got = deviations(scaled, formats);
      Tensor want(Dtype::kF64, sigma.o.shape());
      fill(want, [&](std::int64_t i) { return factor * load(sigma.o.view(), i); });
      EXPECT_TRUE(same_bits(got.o, want)) << factor;
    }
  }
}

KdaInputs padding(std::int64_t T) {
  KdaInputs inputs = random_inputs({.T = T, .K = 8, .V = 8}, 9);
  inputs.initial_state = random_state(inputs.semantics(), 10);
  for (Tensor* tensor : {&inputs.k, &inputs.v, &inputs.g, &inputs.beta}) {
    fill(*tensor, [](std::int64_t) { return 0; });
  }
  return inputs;
}

TEST(Variance, PaddingKeepsZeros) {
  const Deviations sigma = deviations(padding(130), bf16());
  EXPECT_EQ(largest(*sigma.final_state), 0);
  EXPECT_EQ(largest(*sigma.h), 0);
  EXPECT_GT(largest(sigma.o), 0);
  Formats rounded = bf16();
  rounded.state = reference::kRoundBf16;
  EXPECT_GT(largest(*deviations(padding(130), rounded).final_state), 0);
}

TEST(Variance, PaddingKeepsTheDeviation) {
  KdaInputs inputs = random_inputs({.T = 192, .K = 8, .V = 8}, 11);
  const KdaInputs pads = padding(128);
  for (std::int64_t t = 64; t < 192; ++t) {
    for (std::int64_t c = 0; c < 8; ++c) {
      inputs.g.store(t * 8 + c, 0);
      inputs.k.store(t * 8 + c, 0);
      inputs.v.store(t * 8 + c, 0);
    }
    inputs.beta.store(t, 0);
  }
  const Deviations sigma = deviations(inputs, f32());
  EXPECT_TRUE(same_bits(slot(*sigma.h, 1), *sigma.final_state));
  EXPECT_TRUE(same_bits(slot(*sigma.h, 2), *sigma.final_state));
}

TEST(Variance, StaysBoundedWithoutDecay) {
  KdaInputs inputs = random_inputs({.T = 4096, .K = 16, .V = 4}, 12, Dtype::kBf16);
  fill(inputs.g, [](std::int64_t) { return 0; });
  for (const Formats& formats : {bf16(), f32()}) {
    const Deviations sigma = deviations(inputs, formats);
    const double early = largest(slot(*sigma.h, 4));
    EXPECT_GT(early, 0);
    EXPECT_LE(largest(*sigma.final_state), 3 * early);
    EXPECT_LE(largest(sigma.o), 10 * early);
  }
}

TEST(Variance, IsFiniteOnHardCases) {
  std::vector<NamedCase> cases = option_cases();
  for (NamedCase& hard : hard_cases()) cases.push_back(std::move(hard));
  Formats per_token = bf16();
  per_token.state = reference::kRoundBf16;
  per_token.state_storage = reference::StateStorage::kPerToken;
  for (const NamedCase& named : cases) {
    for (const Formats& formats :
         {bf16(), f32(), default_formats(Dtype::kF16, Dtype::kF16), per_token}) {
      const Deviations sigma = deviations(named.inputs, formats);
      for (const double x : values(sigma.o)) ASSERT_TRUE(x >= 0 && x < 1e6) << named.name << x;
      for (const double x : values(*sigma.final_state)) {
        ASSERT_TRUE(x >= 0 && x < 1e6) << named.name << x;
      }
    }
  }
}

TEST(Variance, InstructionSetsAndThreadsAgree) {
  for (const NamedCase& named : hard_cases()) {
    const Deviations want = deviations(
        named.inputs, f32(), {.threads = 1, .instructions = reference::InstructionSet::kBaseline});
    for (const reference::InstructionSet set : reference::available_instruction_sets()) {
      const Deviations got = deviations(named.inputs, f32(), {.threads = 1, .instructions = set});
      EXPECT_LE(difference(got, want), 1e-6) << named.name;
      const Deviations more = deviations(named.inputs, f32(), {.threads = 3, .instructions = set});
      EXPECT_TRUE(same_bits(more.o, got.o) && same_bits(*more.final_state, *got.final_state));
    }
  }
}

void expect_sources_add_up(const KdaInputs& inputs, const Formats& formats) {
  const std::vector<double> whole = values(deviations(inputs, formats).o);
  std::vector<double> sum(whole.size());
  for (const reference::ErrorSource source : reference::all_error_sources()) {
    const std::vector<double> part = values(deviations(inputs, only(formats, source)).o);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i] * part[i];
    EXPECT_GT(*std::ranges::max_element(part), 0) << name(source);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    // Upper limits in the place of terms that cannot matter differ a little.
    EXPECT_NEAR(std::sqrt(sum[i]) / whole[i], 1, 0.01);
  }
}

TEST(Variance, SourcesAddUp) {
  KdaInputs inputs = random_inputs({.T = 70, .K = 9, .V = 5}, 13, Dtype::kBf16);
  inputs.initial_state = random_state(inputs.semantics(), 14);
  Formats formats = bf16();
  formats.state = reference::kRoundBf16;
  expect_sources_add_up(inputs, formats);
  expect_sources_add_up(make(RepeatedKeys{.V = 8}, 1, Dtype::kBf16), formats);
  expect_sources_add_up(make(RepeatedKeys{.V = 8, .beta = 0.1}, 1, Dtype::kBf16), formats);
}

TEST(Variance, CoarserFormatsAreWider) {
  KdaInputs inputs = random_inputs({.T = 70, .K = 9, .V = 5}, 15, Dtype::kBf16);
  const Formats base = f32();
  const std::vector<double> narrow = values(deviations(inputs, base).o);
  for (reference::Rounding Formats::*field :
       {&Formats::operands, &Formats::triangle, &Formats::solve, &Formats::accumulation,
        &Formats::gate, &Formats::state, &Formats::output}) {
    Formats formats = base;
    formats.*field = reference::kRoundBf16;
    const std::vector<double> wide = values(deviations(inputs, formats).o);
    double most = 0;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      EXPECT_GE(wide[i], narrow[i] * (1 - 1e-12));
      most = std::max(most, wide[i] / narrow[i]);
    }
    EXPECT_GT(most, 10);
  }
}

TEST(Variance, EqualKeysHaveEqualNumbers) {
  KdaInputs inputs = random_inputs({.T = 6, .K = 4, .V = 2}, 16);
  for (std::int64_t c = 0; c < 4; ++c) inputs.k.store(5 * 4 + c, load(inputs.k.view(), c));
  const std::vector<std::uint64_t> keys = deviations(inputs, f32()).keys;
  EXPECT_EQ(keys[5], keys[0]);
  EXPECT_EQ(std::set<std::uint64_t>(keys.begin(), keys.end()).size(), 5U);
}

/// The error of the f64 oracle, from one in long double, is nothing beside sigma of f32 formats and
/// within the bound of f64 formats.
TEST(Variance, JudgesTheOracle) {
  std::vector<NamedCase> cases = option_cases();
  for (NamedCase& hard : hard_cases()) cases.push_back(std::move(hard));
  const Formats f64 = default_formats(Dtype::kF64, Dtype::kF64);
  for (const NamedCase& named : cases) {
    const Problem problem = named.inputs.problem();
    const Semantics semantics = named.inputs.semantics();
    const Outputs exact = reference::recurrent_long_double(problem, semantics);
    const Outputs oracle = reference::recurrent(problem, semantics);
    const ZReport beside_f32 = z_scores(oracle, exact, deviations(named.inputs, f32()), semantics);
    const double most = std::max({beside_f32.o.max, beside_f32.final_state.max, beside_f32.h.max});
    EXPECT_LE(most, 1e-7) << named.name;
    const ZReport report = z_scores(oracle, exact, deviations(named.inputs, f64), semantics);
    EXPECT_TRUE(report.accepted()) << named.name << "\n"
                                   << report.o.text() << "\n"
                                   << report.final_state.text();
  }
}

TEST(Variance, RefusesBlocksThatItCannotHold) {
  const KdaInputs inputs = random_inputs({.T = 2}, 17);
  for (const std::int64_t block : {-1, 129}) {
    Formats formats = bf16();
    formats.block = block;
    try {
      (void)deviations(inputs, formats);
      FAIL() << block;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
    }
  }
}

}  // namespace
}  // namespace kda::tests
