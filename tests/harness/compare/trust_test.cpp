#include "harness/compare/trust.hpp"

#include "tests/harness/compare/compare_judged.hpp"

#include <string>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

/// Replaces one input everywhere and answers again.
Judged with_input(const std::string& line, const char* input, double value) {
  Case made = make_case(parse_case_line(line));
  Tensor& tensor = std::get<KdaCase>(made.inputs).inputs.at(input);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, value);
  return Judged(std::move(made));
}

TEST(Trust, OrdinaryCasesAreTrustedByDerivedInEveryClass) {
  for (const char* dtype : {"bf16", "f16", "f32"}) {
    for (const char* shape :
         {"T=1", "T=130 H=2 HV=4 initial_state=1 h=1", "lens=1,2,0,5,65 v_first=1 initial_state=1",
          "T=70 gate=bound l2norm=1 beta_sigmoid=1", "T=70 gate=softplus h=1"}) {
      const Judged judged("op=chunk_kda K=16 V=16 final_state=1 dtype=" + std::string(dtype) + " " +
                          shape);
      for (const StatedFormats& stated : {StatedFormats{}, f32_formats()}) {
        const auto doubt = judged.doubt("derived", stated);
        EXPECT_FALSE(doubt) << judged.made.name << ": " << doubt->code << ": " << doubt->detail;
      }
    }
  }
}

TEST(Trust, FamiliesAreTrustedInClassF32) {
  for (const FamilyInfo& info : all_families()) {
    const Judged judged(
        "op=chunk_kda T=70 H=2 K=16 V=16 dtype=f32 initial_state=1 final_state=1 "
        "h=1 family=" +
        std::string(info.name));
    const auto doubt = judged.doubt("derived");
    EXPECT_FALSE(doubt) << info.name << ": " << doubt->code << ": " << doubt->detail;
  }
}

TEST(Trust, ATolerantPolicyIsNotTrustedOnSmallValues) {
  const Judged judged("op=chunk_kda T=64 K=32 V=8 scale=0.001");  // |o| far below atol
  const auto doubt = judged.doubt("sglang");
  ASSERT_TRUE(doubt);
  EXPECT_EQ(doubt->code, "probe_passed");
  EXPECT_EQ(doubt->detail, "o zeros would pass, so that a pass proves nothing");
  EXPECT_FALSE(judged.doubt("derived"));
  EXPECT_FALSE(judged.doubt("exact"));
}

TEST(Trust, ZerosAreVacuous) {
  const Judged judged("op=chunk_kda T=8 K=8 V=8 scale=0");
  for (const char* policy : {"derived", "exact"}) {
    const auto doubt = judged.doubt(policy);
    ASSERT_TRUE(doubt);
    EXPECT_EQ(doubt->code, "vacuous");
  }
}

TEST(Trust, ValuesBelowTheRangeOfTheFormatsAreNotJudged) {
  const Judged judged = with_input("op=chunk_kda T=64 K=16 V=16 dtype=f32", "v", 1e-30);
  EXPECT_FALSE(judged.doubt("derived"));
  const auto doubt = judged.doubt("derived", parse_formats("f16"));
  ASSERT_TRUE(doubt);
  EXPECT_EQ(doubt->code, "probe_passed");
}

/// A right kernel returns infinity there.
TEST(Trust, ValuesBeyondTheFormatOfTheResultAreNotJudged) {
  const Judged judged = with_input("op=chunk_kda T=64 K=16 V=16 dtype=f32 final_state=1", "v", 1e6);
  EXPECT_FALSE(judged.doubt("derived"));
  for (const char* formats : {"output=f16", "state=f16"}) {
    const auto doubt = judged.doubt("derived", parse_formats(formats));
    ASSERT_TRUE(doubt) << formats;
    EXPECT_EQ(doubt->code, "out_of_range");
  }
  const Judged huge = with_input("op=chunk_kda T=64 K=16 V=16 dtype=f32 scale=8", "v", 3e38);
  const auto doubt = huge.doubt("derived", parse_formats("output=bf16"));
  ASSERT_TRUE(doubt);
  EXPECT_EQ(doubt->code, "out_of_range");
  // Exact values inside the range, and a rounding error away from its end.
  const Judged near("op=chunk_kda T=64 H=1 K=16 V=16 dtype=f32 family=ordinary scale=26700 seed=1");
  EXPECT_FALSE(near.doubt("derived", parse_formats("f32,output=f16")));
  EXPECT_TRUE(near.doubt("derived", parse_formats("bf16,output=f16")));
}

TEST(Trust, SixteenBitOperandsCannotSolveEqualKeysAtBeta2) {
  const Judged judged = with_input("op=chunk_kda T=64 K=16 V=16 family=identical", "beta", 2);
  const auto doubt = judged.doubt("derived");
  ASSERT_TRUE(doubt);
  EXPECT_FALSE(judged.doubt("derived", f32_formats()));
}

TEST(Trust, ProbesThatChangeNothingAreNamed) {
  const Judged judged("op=chunk_kda T=1 K=1 V=1 final_state=1");
  Trust trust;
  trust.add(judged.semantics, judged.standard("derived"));
  EXPECT_FALSE(trust.doubt());
  EXPECT_EQ(trust.skipped(),
            (std::vector<std::string>{"o the mean", "o shifted by a token", "o heads rotated",
                                      "o columns reversed", "final_state heads rotated",
                                      "final_state transposed", "final_state sequences rotated"}));
  EXPECT_TRUE(trust.unprobed().empty()) << "zeros remain";
}

TEST(Trust, AStateOfZerosIsUnprobed) {
  const Judged judged("op=chunk_kda T=5 K=4 V=4 h=1");
  Trust trust;
  trust.add(judged.semantics, judged.standard("derived"));
  EXPECT_FALSE(trust.doubt());
  EXPECT_EQ(trust.unprobed(), std::vector<std::string>{"h"});
}

TEST(Probes, DoWhatTheySay) {
  const Judged judged("op=chunk_kda lens=2,3 H=2 K=3 V=3 final_state=1");
  const Tensor& o = judged.expected.at("o");
  const Tensor shifted = *spoilt(Probe::kShifted, OutputKind::kO, judged.semantics, o);
  EXPECT_EQ(get(shifted, (3 * 2 + 1) * 3), get(o, (2 * 2 + 1) * 3)) << "within a sequence";
  EXPECT_EQ(get(shifted, 2 * 2 * 3), get(o, 4 * 2 * 3)) << "its first from its last";
  const Tensor& state = judged.expected.at("final_state");
  const auto kind = OutputKind::kFinalState;
  EXPECT_EQ(get(*spoilt(Probe::kTransposed, kind, judged.semantics, state), 9 + 1),
            get(state, 9 + 3));
  EXPECT_EQ(get(*spoilt(Probe::kHeadsRotated, kind, judged.semantics, state), 0), get(state, 9));
  EXPECT_EQ(get(*spoilt(Probe::kSlotsRotated, kind, judged.semantics, state), 0), get(state, 18));
  EXPECT_EQ(get(*spoilt(Probe::kSlotsRotated, kind, judged.semantics, state), 18), get(state, 0));
}

}  // namespace
}  // namespace kda::harness
