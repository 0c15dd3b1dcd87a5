#include "harness/case/fill.hpp"

#include "harness/case/counter_rng.hpp"
#include "reference/activated.hpp"
#include "reference/types/contract.hpp"

#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

KdaCase filled(const std::string& line) { return fill(parse_case_line(line)); }

std::vector<double> values(const KdaCase& kda_case, const std::string& name) {
  return to_f64(kda_case.inputs.at(name).view());
}

/// FNV-1a over the bytes of all inputs.
std::uint64_t hash(const KdaCase& kda_case) {
  std::uint64_t h = 0xCBF29CE484222325U;
  for (const auto& [name, tensor] : kda_case.inputs) {
    for (std::int64_t i = 0; i < tensor.bytes(); ++i) {
      h = (h ^ std::to_integer<std::uint64_t>(tensor.data()[i])) * 0x100000001B3U;
    }
  }
  return h;
}

double row_length(const std::vector<double>& x, std::int64_t row, std::int64_t width) {
  double square = 0;
  for (std::int64_t c = 0; c < width; ++c) {
    const double value = x[static_cast<std::size_t>(row * width + c)];
    square += value * value;
  }
  return std::sqrt(square);
}

/// What the kernel makes of g and beta, through the reference.
reference::ActivatedRows activated(const std::string& text) {
  const Case made = make_case(parse_case_line(text));
  const auto& kda_case = std::get<KdaCase>(made.inputs);
  const Problem problem = kda_case.problem();
  const Semantics semantics = check(kda_case.contract, problem);
  reference::ActivatedRows rows;
  const Sequence& first = semantics.sequences.front();
  reference::ActivatedReader(problem, semantics).read(first, 0, 0, first.length(), rows);
  return rows;
}

// Known answers of the authors' own test set (Random123, kat_vectors).
TEST(Philox, MatchesPublishedVectors) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, NormalAndUniformHaveTheirMoments) {
  const CounterRng rng(7, "moments");
  constexpr int kCount = 100000;
  double mean = 0;
  double variance = 0;
  double fourth = 0;
  double uniform = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal(i / 2, 0, 0, i % 2);
    mean += x / kCount;
    variance += x * x / kCount;
    fourth += x * x * x * x / kCount;
    uniform += rng.uniform(i, 0, 0, 0) / kCount;
  }
  EXPECT_NEAR(mean, 0, 0.015);
  EXPECT_NEAR(variance, 1, 0.02);
  EXPECT_NEAR(fourth, 2.94, 0.1);  // 3 for a normal distribution
  EXPECT_NEAR(uniform, 0.5, 0.005);
}

TEST(CounterRng, RowsHoldTheSameNumbers) {
  const CounterRng rng(9, "rows");
  std::vector<double> row(7);
  rng.normal_row(1, 2, 3, row);
  for (std::size_t d = 0; d < row.size(); ++d) {
    EXPECT_EQ(row[d], rng.normal(1, 2, 3, static_cast<std::int64_t>(d)));
  }
}

TEST(CounterRng, StreamsSeedsAndCoordinatesDiffer) {
  const std::set<double> different = {
      CounterRng(1, "q").uniform(0, 0, 0, 0), CounterRng(2, "q").uniform(0, 0, 0, 0),
      CounterRng(1, "k").uniform(0, 0, 0, 0), CounterRng(1, "q").uniform(1, 0, 0, 0),
      CounterRng(1, "q").uniform(0, 1, 0, 0), CounterRng(1, "q").uniform(0, 0, 1, 0),
      CounterRng(1, "q").uniform(0, 0, 0, 1)};
  EXPECT_EQ(different.size(), 7U);
}

// The same bits everywhere: a change here invalidates every recorded case line.
TEST(Fill, GoldenHashes) {
  const std::string shape = " T=9 H=2 HV=4 K=16 V=8 initial_state=1 seed=42";
  EXPECT_EQ(hash(filled("op=chunk_kda" + shape)), 4085676051645595621U);
  EXPECT_EQ(hash(filled("op=chunk_kda gate=bound l2norm=1 beta_sigmoid=1" + shape)),
            6970188792188217254U);
  EXPECT_EQ(hash(filled("op=chunk_kda dtype=f32 family=collinear" + shape)), 7948374085025677815U);
  EXPECT_EQ(hash(filled("op=chunk_kda dtype=f16 gate=softplus family=resets" + shape)),
            14006833592276436672U);
}

TEST(Fill, SeedChangesEveryRandomTensor) {
  const std::string line = "op=chunk_kda T=8 K=8 V=8 gate=softplus initial_state=1 seed=";
  const KdaCase one = filled(line + "1");
  const KdaCase two = filled(line + "2");
  for (const auto& [name, tensor] : one.inputs) {
    EXPECT_NE(values(one, name), values(two, name)) << name;
  }
}

TEST(Fill, LargerCasesContinueSmallerOnes) {
  const KdaCase small = filled("op=chunk_kda T=5 H=1 K=8 V=4 dtype=f32");
  const KdaCase large = filled("op=chunk_kda T=300 H=3 K=8 V=4 dtype=f32");
  const auto v_small = values(small, "v");
  const auto v_large = values(large, "v");
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(v_small[t * 4 + c], v_large[t * 3 * 4 + c]);
  }
}

TEST(Fill, StatesAreTheSameInBothLayouts) {
  const std::string line = "op=chunk_kda T=1 K=3 V=5 initial_state=1";
  const auto kv = values(filled(line), "initial_state");
  const auto vk = values(filled(line + " v_first=1"), "initial_state");
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t v = 0; v < 5; ++v) EXPECT_EQ(kv[k * 5 + v], vk[v * 3 + k]);
  }
}

TEST(Fill, RowsBeyondTheLastSequenceAreNaN) {
  const KdaCase made = filled("op=chunk_kda lens=3,0,2 T=9 K=4 V=4");
  for (const char* name : {"q", "k", "v", "g", "beta"}) {
    const auto x = values(made, name);
    const std::size_t width = x.size() / 9;
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(std::isnan(x[i]), i / width >= 5) << name << ' ' << i;
    }
  }
  EXPECT_EQ(values(made, "cu_seqlens"), (std::vector<double>{0, 3, 3, 5}));
}

TEST(Fill, RowsOfKeysHaveLengthOneUnlessTheKernelNormalises) {
  const auto unit = values(filled("op=chunk_kda T=20 K=32 V=4 dtype=f32"), "k");
  const auto raw = values(filled("op=chunk_kda T=20 K=32 V=4 dtype=f32 l2norm=1"), "k");
  double mean = 0;
  for (std::int64_t t = 0; t < 20; ++t) {
    EXPECT_NEAR(row_length(unit, t, 32), 1, 1e-6);
    mean += row_length(raw, t, 32) / 20;
  }
  EXPECT_NEAR(mean, std::sqrt(32.0), 0.5);
}

TEST(Fill, IdenticalAndAlternatingKeysAreBitwiseSo) {
  const KdaCase same = filled("op=chunk_kda T=4 H=2 K=8 V=4 family=identical");
  const KdaCase signs = filled("op=chunk_kda T=4 H=2 K=8 V=4 family=alternating");
  const auto k = values(same, "k");
  const auto alternating = values(signs, "k");
  EXPECT_EQ(k, values(same, "q"));
  for (std::size_t i = 0; i < k.size(); ++i) {
    EXPECT_EQ(k[i], k[i % 16]);
    EXPECT_EQ(alternating[i], i / 16 % 2 == 0 ? k[i] : -k[i]);
  }
}

TEST(Fill, CollinearKeysAreClose) {
  const auto k = values(filled("op=chunk_kda T=30 K=64 V=4 dtype=f32 family=collinear"), "k");
  for (std::size_t t = 1; t < 30; ++t) {
    double dot = 0;
    for (std::size_t c = 0; c < 64; ++c) dot += k[c] * k[t * 64 + c];
    EXPECT_GT(dot, 0.97);
    EXPECT_LT(dot, 0.99999);
  }
}

TEST(Fill, LogDecaysAreNeverPositive) {
  for (const FamilyInfo& info : all_families()) {
    for (const char* gate : {"none", "softplus", "bound"}) {
      const auto rows = activated("op=chunk_kda T=40 K=32 V=4 gate=" + std::string(gate) +
                                  " family=" + std::string(info.name));
      for (const double g : rows.log_decay) EXPECT_LE(g, 0) << info.name << ' ' << gate;
    }
  }
}

TEST(Fill, RawGatesComeCloseToTheDecaysOfTheirFamily) {
  for (const char* family : {"slow_gate", "no_decay", "gate_ladder", "channels"}) {
    const std::string line = "op=chunk_kda T=3 K=64 V=4 g_dtype=f32 family=" + std::string(family);
    const auto plain = activated(line).log_decay;
    const auto raw = activated(line + " gate=softplus").log_decay;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_NEAR(raw[i], plain[i], 0.05 * std::abs(plain[i]) + 3e-4) << family << ' ' << i;
    }
  }
}

TEST(Fill, ResetsForgetAWholeHeadNowAndThen) {
  const auto g = values(filled("op=chunk_kda T=400 K=4 V=4 family=resets"), "g");
  int resets = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    EXPECT_EQ(g[i] == -1000, g[i / 4 * 4] == -1000);
    resets += g[i] == -1000 ? 1 : 0;
  }
  EXPECT_GT(resets / 4, 8);
  EXPECT_LT(resets / 4, 40);
}

TEST(Fill, BetaReachesWhatTheFamilyPromises) {
  const std::string shape = "op=chunk_kda T=6 K=4 V=4 beta_dtype=f32 ";
  for (const double b : activated(shape + "family=beta2").beta) EXPECT_EQ(b, 2);
  const std::string doubled = "beta_sigmoid=1 neg_eigval=1 ";
  for (const double b : activated(shape + doubled + "family=beta2").beta) EXPECT_EQ(b, 2);
  for (const double b : activated(shape + doubled + "family=alternating").beta) {
    EXPECT_NEAR(b, 1.5, 0.01);
  }
  for (const double b : activated(shape + "family=identical").beta) EXPECT_NEAR(b, 0.9, 1e-6);
  for (const double b : activated(shape + "beta_sigmoid=1 family=identical").beta) {
    EXPECT_NEAR(b, 0.9, 0.01);
  }
}

TEST(Fill, PadRowsChangeNothing) {
  for (const char* options : {"", "l2norm=1 gate=softplus beta_sigmoid=1"}) {
    const auto rows = activated("op=chunk_kda T=16 K=8 V=4 family=padding " + std::string(options));
    int pads = 0;
    for (std::size_t t = 0; t < 16; ++t) {
      if (t % 4 != 3 && t < 12) continue;
      ++pads;
      EXPECT_LT(rows.beta[t], 1e-80);
      for (std::size_t c = 0; c < 8; ++c) {
        EXPECT_EQ(rows.k[t * 8 + c], 0);
        EXPECT_EQ(std::exp(rows.log_decay[t * 8 + c]), 1);
      }
      for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(rows.v[t * 4 + c], 0);
    }
    EXPECT_EQ(pads, 7);
  }
}

TEST(Fill, WildStateSpansDecades) {
  const KdaCase made = filled("op=chunk_kda T=50 K=13 V=7 initial_state=1 family=wild_state");
  const auto v = values(made, "v");
  const auto state = values(made, "initial_state");
  double small = 0;
  double large = 0;
  for (std::size_t t = 0; t < 50; ++t) {
    small = std::max(small, std::abs(v[t * 7]));
    large = std::max(large, std::abs(v[t * 7 + 6]));
  }
  EXPECT_GT(large / small, 1e5);
  EXPECT_LT(std::abs(state[0]), 1e-5);
  EXPECT_GT(row_length(state, 10, 7), 1e3);
}

TEST(Fill, OrdinaryDecaysSpreadOverOctavesByChannel) {
  const auto g = values(filled("op=chunk_kda T=2 K=128 V=4 g_dtype=f32"), "g");
  int slow = 0;
  int fast = 0;
  for (const double x : g) {
    EXPECT_GE(x, -4);
    EXPECT_LE(x, -0x1p-8);
    slow += x > -0.05 ? 1 : 0;
    fast += x < -0.5 ? 1 : 0;
  }
  EXPECT_GT(slow, 50);
  EXPECT_GT(fast, 30);
}

}  // namespace
}  // namespace kda::harness
