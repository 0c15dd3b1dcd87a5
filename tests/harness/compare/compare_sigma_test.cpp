#include "harness/run/oracle.hpp"
#include "tests/harness/compare/compare_judged.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

// Policy `derived`: its tests one by one, on results that differ from the exact one by multiples of
// sigma.

namespace kda::harness {
namespace {

/// exact + z sigma, z by element.
template <class Z>
Tensor moved(const Judged& judged, const StatedFormats& stated, OutputKind kind, Z z) {
  const CaseDeviations& deviations = *judged.standard("derived", stated).deviations;
  const Tensor& sigma = kind == OutputKind::kO            ? deviations.sigma.o
                        : kind == OutputKind::kFinalState ? *deviations.sigma.final_state
                                                          : *deviations.sigma.h;
  Tensor got = judged.expected.at(std::string(name(kind)));
  for (std::int64_t i = 0; i < got.size(); ++i) got.store(i, get(got, i) + z(i) * get(sigma, i));
  return got;
}

TensorReport report_moved(const Judged& judged, OutputKind kind, auto z) {
  Tensors got = judged.expected;
  got.at(std::string(name(kind))) = moved(judged, {}, kind, z);
  return judged.report(got, "derived", name(kind));
}

TEST(Derived, AnElementMayBeOffBySevenSigma) {
  for (const OutputKind kind : {OutputKind::kO, OutputKind::kFinalState, OutputKind::kH}) {
    // h begins with an initial state, which has no sigma.
    const std::int64_t last = ordinary().expected.at(std::string(name(kind))).size() - 1;
    const auto one = [&](double z) {
      return report_moved(ordinary(), kind, [=](std::int64_t i) { return i == last ? z : 0; });
    };
    EXPECT_TRUE(one(6.9).passed) << name(kind);
    const TensorReport report = one(7.1);
    EXPECT_FALSE(report.passed) << name(kind);
    EXPECT_NEAR(report.use->element.share, 7.1 / 7, 1e-6);
    EXPECT_EQ(report.use->element.place, to_string(report.worst->place));
    EXPECT_EQ(report.metrics.bad, 1);
  }
}

TEST(Derived, ARowMayBeOffByFourSigma) {
  const std::int64_t V = 32;
  const auto row = [&](double z) {
    return report_moved(ordinary(), OutputKind::kO,
                        [=](std::int64_t i) { return i / V == 10 * 4 + 2 ? z : 0; });
  };
  EXPECT_TRUE(row(3.9).passed);
  const TensorReport report = row(4.1);
  EXPECT_FALSE(report.passed);
  EXPECT_EQ(report.detail, "n=0 hv=2 t=10: RMS error of 4.1 sigma, wanted at most 4");
  EXPECT_EQ(report.use->row.place, "n=0 hv=2 t=10");
}

TEST(Derived, AColumnOfAStateMayBeOffByFourSigma) {
  const auto column = [&](double z) {
    return report_moved(ordinary(), OutputKind::kFinalState,
                        [=](std::int64_t i) { return i % 32 == 5 && i / 1024 == 1 ? z : 0; });
  };
  EXPECT_TRUE(column(3.9).passed);
  EXPECT_EQ(column(4.1).detail, "n=0 hv=1 v=5: RMS error of 4.1 sigma, wanted at most 4");
}

TEST(Derived, AHeadAndAChunkHaveTheirOwnLimits) {
  // 130 different keys in a head, 64 in a chunk.
  const double head_limit = 1.5 + 2.5 / std::sqrt(130.0);
  const double chunk_limit = 1.5 + 2.5 / std::sqrt(64.0);
  const auto tokens = [&](double z, std::int64_t first, std::int64_t last) {
    return report_moved(ordinary(), OutputKind::kO, [=](std::int64_t i) {
      const std::int64_t t = i / 128;
      const double sign = i % 2 == 0 ? 1 : -1;  // no bias
      return i / 32 % 4 == 3 && t >= first && t < last ? sign * z : 0;
    });
  };
  EXPECT_TRUE(tokens(0.98 * head_limit, 0, 130).passed);
  EXPECT_NE(tokens(1.02 * head_limit, 0, 130).detail.find("n=0 hv=3: RMS error"),
            std::string::npos);
  EXPECT_TRUE(tokens(0.98 * chunk_limit, 64, 128).passed);
  EXPECT_NE(tokens(1.02 * chunk_limit, 64, 128).detail.find("n=0 hv=3 t=64..127: RMS error"),
            std::string::npos);
}

TEST(Derived, EqualKeysCountOnce) {
  const Judged judged("op=chunk_kda T=64 K=16 V=16 family=identical");
  const auto all = [&](double z) {
    return report_moved(judged, OutputKind::kO,
                        [=](std::int64_t i) { return i % 2 == 0 ? z : -z; });
  };
  EXPECT_EQ(all(1).use->sums.rows, 1);
  EXPECT_TRUE(all(3.9).passed) << "one independent row: its limit is that of a row";
  EXPECT_FALSE(all(4.1).passed);
}

TEST(Derived, WithoutSigmaValuesMustBeEqual) {
  // Pad rows behind the last token change nothing, not even by a rounding.
  const Judged judged("op=chunk_kda lens=0,3 K=4 V=4 initial_state=1 final_state=1 h=1");
  Tensors got = judged.rounded();
  EXPECT_TRUE(judged.report(got, "derived").passed());
  Tensor& state = got.at("final_state");
  const float value = state.as<float>()[3];  // of the empty sequence
  state.as<float>()[3] = std::nextafter(value, 9.0F);
  const TensorReport report = judged.report(got, "derived", "final_state");
  EXPECT_EQ(report.reason, "over_bound");
  EXPECT_TRUE(std::isinf(report.used_share));
}

TEST(Derived, ExpectedValuesStoredInF32AreAllowedFor) {
  Judged judged("op=chunk_kda T=40 K=8 V=8 dtype=f32 final_state=1 h=1 initial_state=1");
  const Tensors got = judged.rounded();
  for (auto& [name, tensor] : judged.expected) tensor = converted(tensor, Dtype::kF32);
  EXPECT_TRUE(judged.report(got, "derived").passed());
  const auto bf16 = tensors_of(reference::recurrent_f32(judged.problem, judged.semantics));
  EXPECT_TRUE(judged.report(bf16, "derived").passed());
}

TEST(Derived, NeedsDeviations) {
  const Standard standard{.expected = ordinary().expected, .policy = find_policy("derived")};
  EXPECT_THROW((void)compare(ordinary().semantics, standard, ordinary().expected), Error);
}

/// bf16 towards zero.
Tensor truncated(const Tensor& exact) {
  Tensor cut(Dtype::kBf16, exact.shape());
  for (std::int64_t i = 0; i < exact.size(); ++i) {
    const auto bits = detail::bits_of(detail::round_to_odd(get(exact, i)));
    cut.as<Bf16>()[i] = Bf16{static_cast<std::uint16_t>(bits >> 16)};
  }
  return cut;
}

TEST(Derived, TruncationShowsAsABiasWhereTheStorageRulesTheError) {
  const Judged judged("op=chunk_kda T=130 K=32 V=32 l2norm=1 seed=3");
  Tensors got = judged.rounded();
  const CompareReport rounded = judged.report(got, "derived", f32_formats());
  EXPECT_TRUE(rounded.passed()) << to_text(rounded);
  EXPECT_LT(rounded.find("o")->use->bias->share, 0.3);
  EXPECT_GT(rounded.find("o")->use->sums.ruled, 4000);
  got.at("o") = truncated(judged.expected.at("o"));
  const CompareReport cut = judged.report(got, "derived", f32_formats());
  EXPECT_FALSE(cut.passed());
  EXPECT_NEAR(cut.find("o")->use->sums.ruled_mean(), -1.7, 0.1);
  EXPECT_GT(cut.find("o")->use->bias->share, 2);
  const CompareReport hidden = judged.report(got, "derived");
  EXPECT_TRUE(hidden.passed()) << "16-bit operands hide it in one case";
  EXPECT_FALSE(hidden.find("o")->use->bias) << "not applied, which is not 0";
  EXPECT_NE(to_text(hidden).find(", bias -"), std::string::npos) << to_text(hidden);
  EXPECT_TRUE(to_json(hidden).at("tensors").at(0).at("sigma").at("bias").is_null());
}

/// got = exact (1 + d) in part of `o` until that fails: the smallest d by factors of 1.2.
double smallest(const Judged& judged, const StatedFormats& stated, auto part) {
  for (double d = 1e-7; d < 1; d *= 1.2) {
    Tensors got = judged.expected;
    Tensor& o = got.at("o");
    for (std::int64_t i = 0; i < o.size(); ++i)
      if (part(i)) o.store(i, (1 + d) * get(o, i));
    if (!judged.report(got, "derived", stated).passed()) return d;
  }
  return 1;
}

TEST(Derived, SeesErrorsOfThisSize) {
  const auto& exact = ordinary().expected.at("o");
  std::int64_t loud = 0;  // the largest element of `o`
  for (std::int64_t i = 0; i < exact.size(); ++i)
    if (std::abs(get(exact, i)) > std::abs(get(exact, loud))) loud = i;
  const auto element = [=](std::int64_t i) { return i == loud; };
  const auto row = [=](std::int64_t i) { return i / 32 == loud / 32; };
  const auto head = [=](std::int64_t i) { return i / 32 % 4 == loud / 32 % 4; };
  const auto all = [](std::int64_t) { return true; };
  EXPECT_NEAR(std::log(smallest(ordinary(), {}, element) / 0.0186), 0, 0.4);
  EXPECT_NEAR(std::log(smallest(ordinary(), {}, row) / 0.0186), 0, 0.4);
  EXPECT_NEAR(std::log(smallest(ordinary(), {}, head) / 0.0089), 0, 0.4);
  EXPECT_NEAR(std::log(smallest(ordinary(), {}, all) / 0.0117), 0, 0.4);
  EXPECT_LT(smallest(ordinary(), f32_formats(), all), 0.003) << "o is stored in bf16";
  const StatedFormats f32 = parse_formats("operands=f32,output=f32");
  EXPECT_LT(smallest(ordinary(), f32, all), 2e-6);
}

TEST(Derived, HeadsTakenOneByOneAreJudgedAsTheWhole) {
  Tensors got = ordinary().rounded();
  got.at("o").store(((100 * 4) + 3) * 32 + 17, 50);
  const CompareReport whole = ordinary().report(got, "derived");
  CompareReport merged;
  for (std::int64_t hv = 0; hv < 4; ++hv) {
    const KdaCase part = take_head(ordinary().kda_case, hv);
    const Semantics meaning = check(part.contract, part.problem());
    const Tensors expected = take_head(ordinary().expected, hv);
    const CaseDeviations deviations =
        deviations_of(part, meaning, formats_of({}, ordinary().problem));
    Standard standard{.expected = expected,
                      .policy = find_policy("derived"),
                      .deviations = &deviations,
                      .first_head = hv};
    merge(merged, compare(meaning, standard, take_head(got, hv)), standard.policy);
  }
  for (const TensorReport& one : whole.tensors) {
    const TensorReport& other = *merged.find(one.name);
    EXPECT_EQ(one.passed, other.passed);
    EXPECT_EQ(one.detail, other.detail);
    EXPECT_EQ(one.metrics.bad, other.metrics.bad);
    EXPECT_EQ(one.use->element.place, other.use->element.place);
    EXPECT_NEAR(one.use->group.share, other.use->group.share, 0.01 * one.use->group.share);
    EXPECT_NEAR(one.use->sums.z2, other.use->sums.z2, 1e-6 * one.use->sums.z2);
  }
}

}  // namespace
}  // namespace kda::harness
