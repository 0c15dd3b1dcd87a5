#include "tests/harness/compare/compare_judged.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

TEST(Compare, ExactResultsPassEveryPolicy) {
  for (const Policy& policy : all_policies()) {
    const CompareReport report = ordinary().report(ordinary().expected, policy.name);
    EXPECT_TRUE(report.passed()) << policy.name;
    for (const TensorReport& tensor : report.tensors) EXPECT_EQ(tensor.used_share, 0);
  }
}

TEST(Compare, RoundedResultsPassAllButExact) {
  for (const Policy& policy : all_policies()) {
    EXPECT_EQ(ordinary().report(ordinary().rounded(), policy.name).passed(), policy.name != "exact")
        << policy.name;
  }
}

TEST(Compare, ExactLimitIsRelativeToTheSequence) {
  Tensors got = ordinary().expected;
  Tensor& o = got.at("o");
  double most = 0;
  for (std::int64_t i = 0; i < o.size(); ++i) most = std::max(most, std::abs(get(o, i)));
  const double value = get(o, 100);
  o.store(100, value + 0.9e-11 * most);
  EXPECT_TRUE(ordinary().report(got, "exact").passed());
  o.store(100, value + 1.1e-11 * most);
  const TensorReport report = ordinary().report(got, "exact", "o");
  EXPECT_EQ(report.reason, "over_bound");
  EXPECT_NEAR(report.used_share, 1.1, 0.01);
  EXPECT_EQ(report.metrics.bad, 1);
}

TEST(Compare, ExactAllowsForExpectedValuesStoredInF32) {
  Judged judged("op=chunk_kda T=10 K=8 V=8 final_state=1");
  const Tensors got = judged.expected;
  for (auto& [name, tensor] : judged.expected) tensor = converted(tensor, Dtype::kF32);
  EXPECT_TRUE(judged.report(got, "exact").passed());
}

TEST(Compare, NamesThePlaceOfAnOutput) {
  Tensors got = ordinary().rounded();
  const std::int64_t i = ((100 * 4) + 3) * 32 + 17;  // t = 100, hv = 3, v = 17
  got.at("o").store(i, 50);
  const TensorReport report = ordinary().report(got, "derived", "o");
  ASSERT_TRUE(report.worst && report.first_bad && report.window);
  EXPECT_EQ(to_string(report.worst->place), "(n=0, t=100, hv=3, v=17)");
  EXPECT_EQ(to_string(report.first_bad->place), "(n=0, t=100, hv=3, v=17)");
  EXPECT_EQ(report.worst->got, 50);
  EXPECT_EQ(report.metrics.bad, 1);
  EXPECT_EQ(report.window->first_row, 99);
  EXPECT_EQ(report.window->first_col, 15);
  EXPECT_EQ(report.window->rows, 3);
  EXPECT_EQ(report.window->cols, 5);
  EXPECT_EQ(report.window->got[7], 50);  // row 1, column 2
  EXPECT_NE(to_text(report).find("[50]"), std::string::npos);
}

TEST(Compare, NamesThePlaceOfAStateInEitherLayout) {
  for (const bool v_first : {false, true}) {
    const Judged judged("op=chunk_kda lens=70,3 H=2 K=8 V=12 final_state=1 h=1 v_first=" +
                        std::string(v_first ? "1" : "0"));
    Tensors got = judged.rounded();
    const std::int64_t k = 5;
    const std::int64_t v = 11;
    const std::int64_t at = v_first ? v * 8 + k : k * 12 + v;
    got.at("final_state").store((1 * 2 + 1) * 96 + at, 77);
    got.at("h").store((1 * 2 + 0) * 96 + at, 77);
    EXPECT_EQ(to_string(judged.report(got, "derived", "final_state").worst->place),
              "(n=1, hv=1, k=5, v=11)");
    EXPECT_EQ(to_string(judged.report(got, "derived", "h").worst->place),
              "(chunk=1, n=0, hv=0, k=5, v=11)");
  }
}

TEST(Compare, CountsTokensFromTheStartOfTheirSequence) {
  const Judged judged("op=chunk_kda lens=7,0,5 K=4 V=4");
  Tensors got = judged.rounded();
  got.at("o").store((7 + 2) * 4 + 1, 9);
  EXPECT_EQ(to_string(judged.report(got, "derived", "o").worst->place), "(n=2, t=2, hv=0, v=1)");
}

TEST(Compare, MissingTensorsFail) {
  for (const char* name : {"o", "final_state", "h"}) {
    Tensors got = ordinary().rounded();
    got.erase(name);
    EXPECT_EQ(ordinary().report(got, "derived", name).reason, "missing");
    EXPECT_FALSE(ordinary().report(got, "derived").passed());
  }
}

TEST(Compare, ExtraStatesAreIgnoredButNotExtraChunkStates) {
  const Judged judged("op=chunk_kda T=5 K=4 V=4");
  Tensors got = judged.rounded();
  got.emplace("final_state", Tensor(Dtype::kF32, {1}));
  EXPECT_TRUE(judged.report(got, "derived").passed());
  got.emplace("h", Tensor(Dtype::kF32, {1}));
  EXPECT_EQ(judged.report(got, "derived", "h").reason, "unexpected");
  EXPECT_FALSE(judged.report(got, "derived").passed());
}

TEST(Compare, WrongShapesAndTypesFail) {
  Tensors got = ordinary().rounded();
  got.at("final_state") = Tensor(Dtype::kF32, {4, 32, 32});
  const TensorReport shape = ordinary().report(got, "derived", "final_state");
  EXPECT_EQ(shape.reason, "shape_mismatch");
  EXPECT_EQ(shape.detail, "wanted shape (1, 4, 32, 32), got (4, 32, 32)");
  got.at("o") = Tensor(Dtype::kI32, got.at("o").shape());
  const TensorReport dtype = ordinary().report(got, "derived", "o");
  EXPECT_EQ(dtype.reason, "dtype_mismatch");
  EXPECT_EQ(dtype.detail, "wanted a float type, got i32");
}

TEST(Compare, ExpectedTensorsMustBeThere) {
  Judged judged("op=chunk_kda T=5 K=4 V=4 final_state=1");
  const Tensors got = judged.rounded();
  judged.expected.erase("final_state");
  try {
    (void)judged.report(got, "derived");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExpectedShape);
    EXPECT_EQ(error.message(),
              "expected final_state: wanted f64 or f32 of shape (1, 1, 4, 4), got nothing");
  }
}

/// Right results would be held against their rounding.
TEST(Compare, ExpectedTensorsMustBePrecise) {
  Judged judged("op=chunk_kda T=5 K=4 V=4 final_state=1");
  const Tensors got = judged.rounded();
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBf16}) {
    judged.expected.at("final_state") = converted(judged.expected.at("final_state"), dtype);
    EXPECT_THROW(static_cast<void>(judged.report(got, "derived")), Error) << name(dtype);
  }
}

TEST(Compare, RowsOfNoSequenceAreNotCompared) {
  const Judged judged("op=chunk_kda lens=3,4 T=9 K=4 V=4");
  Tensors got = judged.rounded();
  got.at("o").store(7 * 4, std::numeric_limits<double>::quiet_NaN());
  got.at("o").store(8 * 4, 1e30);
  const TensorReport report = judged.report(got, "derived", "o");
  EXPECT_TRUE(report.passed) << report.detail;
  EXPECT_EQ(report.metrics.compared, 7 * 4);
}

TEST(Compare, EmptySequencesPassTheirStateOn) {
  const Judged judged("op=chunk_kda lens=0,0 T=0 K=4 V=4 initial_state=1 final_state=1 h=1");
  Tensors got = judged.rounded();
  EXPECT_TRUE(judged.report(got, "derived").passed());
  EXPECT_EQ(judged.report(got, "derived", "o").metrics.compared, 0);
  Tensor& state = got.at("final_state");
  state.store(20, std::nextafter(static_cast<float>(get(state, 20)), 9.0F));
  const TensorReport report = judged.report(got, "derived", "final_state");
  EXPECT_EQ(report.reason, "over_bound") << "an initial state is passed on bit for bit";
  EXPECT_EQ(report.metrics.max_ulp, 1U);
}

TEST(Compare, FirstChunkStateIsTheInitialState) {
  const Judged judged("op=chunk_kda T=5 K=4 V=4 h=1 initial_state=1");
  Tensors got = judged.rounded();
  EXPECT_TRUE(judged.report(got, "derived").passed());
  got.at("h") = converted(got.at("h"), Dtype::kBf16);
  EXPECT_FALSE(judged.report(got, "derived").passed()) << "rounded, and f32 was stated";
  const StatedFormats bf16_state = parse_formats("state=bf16");
  EXPECT_TRUE(judged.report(got, "derived", bf16_state).passed());
  got.at("h").store(3, 1.25 * get(got.at("h"), 3));
  EXPECT_FALSE(judged.report(got, "derived", bf16_state).passed());
}

/// tf32 is no type that a file can hold: any number within its roundoff is a rounded state.
TEST(Compare, FirstChunkStateInAFormatWithoutAType) {
  const Judged judged("op=chunk_kda T=5 K=4 V=4 h=1 initial_state=1");
  Tensors got = judged.rounded();
  got.at("h").store(3, (1 + 0x1p-12) * get(got.at("h"), 3));
  EXPECT_FALSE(judged.report(got, "derived").passed());
  EXPECT_TRUE(judged.report(got, "derived", parse_formats("state=tf32")).passed());
  got.at("h").store(3, (1 + 0x1p-9) * get(got.at("h"), 3));
  EXPECT_FALSE(judged.report(got, "derived", parse_formats("state=tf32")).passed());
}

TEST(Compare, ZerosOfEitherSignAreEqual) {
  Judged judged("op=chunk_kda T=5 K=4 V=4 final_state=1 h=1");
  Tensors got = judged.rounded();
  for (std::int64_t i = 0; i < 16; ++i) got.at("h").store(i, -0.0);
  EXPECT_TRUE(judged.report(got, "derived").passed());
  EXPECT_FALSE(judged.doubt("derived")) << "a zero first state is no reason";
}

TEST(Compare, ExpectedInfinitiesMustBeMatched) {
  Judged judged("op=chunk_kda T=5 K=4 V=4");
  const double inf = std::numeric_limits<double>::infinity();
  Tensors got = judged.rounded();
  judged.expected.at("o").store(3, inf);
  for (const Policy& policy : all_policies()) {
    EXPECT_EQ(judged.report(got, policy.name, "o").reason, "non_finite") << policy.name;
  }
  got.at("o").store(3, inf);
  EXPECT_TRUE(judged.report(got, "derived").passed());
}

TEST(Compare, WorstIsAFailedTensorIfThereIsOne) {
  Tensors got = ordinary().rounded();
  got.at("h").store(got.at("h").size() - 1, 1e9);
  EXPECT_EQ(ordinary().report(got, "derived").worst()->name, "h");
  EXPECT_EQ(CompareReport{}.worst(), nullptr);
}

TEST(Compare, RendersTextAndJson) {
  Tensors got = ordinary().rounded();
  got.at("o").store(1, std::numeric_limits<double>::quiet_NaN());
  const CompareReport report = ordinary().report(got, "derived");
  const std::string text = to_text(report);
  EXPECT_EQ(text.rfind("policy derived: failed\n", 0), 0U) << text;
  EXPECT_NE(text.find("o: non_finite: (n=0, t=0, hv=0, v=1): wanted"), std::string::npos) << text;
  EXPECT_NE(text.find("final_state: passed"), std::string::npos) << text;
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["policy"], "derived");
  EXPECT_FALSE(json["passed"].get<bool>());
  EXPECT_EQ(json["tensors"][0]["reason"], "non_finite");
  EXPECT_EQ(json["tensors"][0]["worst"]["got"], "nan");
  EXPECT_EQ(json["tensors"][0]["worst"]["place"]["v"], 1);
  EXPECT_EQ(json["tensors"][0]["used_share"], "inf");
  EXPECT_EQ(json["tensors"][1]["metrics"]["bad"], 0);
  EXPECT_EQ(json["tensors"][0]["tokens"]["step"], 8);  // 130 tokens
  EXPECT_EQ(json["tensors"][0]["tokens"]["used_share"].size(), 17U);
  EXPECT_EQ(json["tensors"][0]["tokens"]["used_share"][0], "inf");
  EXPECT_LE(json["tensors"][0]["tokens"]["used_share"][1].get<double>(), 1);
  EXPECT_FALSE(json["tensors"][1].contains("tokens"));  // states have no token
}

TEST(Compare, UlpBeyondAMillionAreRenderedShortAndStoredExactly) {
  TensorReport report;
  report.name = "o";
  report.dtype = Dtype::kF32;
  report.metrics.compared = 1;
  report.metrics.max_ulp = 1'000'000;
  EXPECT_NE(to_text(report).find(", 1000000 ulp of f32,"), std::string::npos) << to_text(report);
  report.metrics.max_ulp = 3'217'000'001;
  EXPECT_NE(to_text(report).find(", 3.22e+09 ulp of f32,"), std::string::npos) << to_text(report);
  CompareReport whole;
  whole.tensors = {report};
  EXPECT_EQ(to_json(whole)["tensors"][0]["metrics"]["max_ulp"], 3'217'000'001U);
}

}  // namespace
}  // namespace kda::harness
