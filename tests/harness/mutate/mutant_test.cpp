#include "harness/mutate/mutant.hpp"

#include "harness/case/case_line.hpp"
#include "harness/compare/compare.hpp"
#include "harness/run/oracle.hpp"
#include "reference/types/contract.hpp"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace kda::harness::mutate {
namespace {

constexpr const char* kLines[] = {
    ("op=chunk_kda T=70 H=2 HV=4 K=16 V=24 dtype=f32 gate=bound l2norm=1 beta_sigmoid=1 "
     "initial_state=1 final_state=1 h=1"),
    "op=chunk_kda lens=5,0,40 H=1 K=12 V=12 chunk=32 v_first=1 initial_state=1 final_state=1 h=1",
    "op=recurrent_kda B=2 T=3 H=1 K=9 V=5 dtype=f16 family=resets final_state=1",
};

const KdaCase& kda_of(const Case& test_case) { return std::get<KdaCase>(test_case.inputs); }

TEST(HonestForms, AgreeWithTheReferenceInF64) {
  for (const char* line : kLines) {
    const Case test_case = make_case(parse_case_line(line));
    const Expected expected = expected_from(test_case, "reference");
    const Semantics semantics = check(kda_of(test_case).contract, kda_of(test_case).problem());
    for (const auto form : {Mutant::Form::kTokens, Mutant::Form::kChunks}) {
      const Outputs got = run(honest(form), kda_of(test_case), Precision::kF64);
      const CompareReport report = compare(kda_of(test_case), semantics, expected.tensors,
                                           by_name(got), find_policy("exact"));
      EXPECT_TRUE(report.passed()) << line << "\n" << to_text(report);
    }
  }
}

TEST(HonestForms, PassAsKernelsInWorkingPrecision) {
  for (const char* line : kLines) {
    const Case test_case = make_case(parse_case_line(line));
    const Expected expected = expected_from(test_case, "reference");
    const Semantics semantics = check(kda_of(test_case).contract, kda_of(test_case).problem());
    for (const auto form : {Mutant::Form::kTokens, Mutant::Form::kChunks}) {
      const Outputs got = run(honest(form), kda_of(test_case), Precision::kWorking);
      EXPECT_EQ(got.o.dtype(), kda_of(test_case).inputs.at("v").dtype());
      const CompareReport report = compare(kda_of(test_case), semantics, expected.tensors,
                                           by_name(got), default_policy(got.o.dtype()));
      EXPECT_TRUE(report.passed()) << line << "\n" << to_text(report);
    }
  }
}

TEST(Catalogue, HasUniqueNamesAndDescriptions) {
  std::set<std::string> names;
  for (const Mutant& m : value_mutants()) {
    EXPECT_TRUE(names.insert(m.name).second) << m.name;
    EXPECT_FALSE(m.what.empty()) << m.name;
  }
  for (const Implementation& faulty : protocol_mutants()) {
    EXPECT_TRUE(names.insert(faulty.name).second) << faulty.name;
  }
  EXPECT_GE(names.size(), 60U);
}

TEST(Mutant, RefusesWhatItsContractRefuses) {
  const Case wrong = make_case(parse_case_line("op=chunk_kda T=4 H=1 K=8 V=8 chunk=16"));
  try {
    static_cast<void>(run(honest(Mutant::Form::kTokens), kda_of(wrong), Precision::kWorking));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kChunkSizeUnsupported);
  }
}

/// T = 1, K = V = 1, q = k = v = 1, beta = 1/2, decay 1/2, state 4: o = 2 + (1 - 2) / 2.
Case by_hand() {
  Case test_case = make_case(
      parse_case_line("op=chunk_kda T=1 H=1 K=1 V=1 dtype=f32 initial_state=1 final_state=1"));
  auto& inputs = std::get<KdaCase>(test_case.inputs).inputs;
  for (const char* name : {"q", "k", "v"}) inputs.at(name).store(0, 1);
  inputs.at("beta").store(0, 0.5);
  inputs.at("g").store(0, std::log(0.5));
  inputs.at("initial_state").store(0, 4);
  return test_case;
}

double output_of(const char* name) {
  const Case test_case = by_hand();
  for (const Mutant& m : value_mutants()) {
    if (m.name != name) continue;
    return load(run(m, kda_of(test_case), Precision::kF64).o.view(), 0);
  }
  ADD_FAILURE() << "no mutant " << name;
  return NAN;
}

TEST(Mutant, MakesTheMistakeThatItsNameSays) {
  const Case test_case = by_hand();
  const auto o = run(honest(Mutant::Form::kTokens), kda_of(test_case), Precision::kF64).o;
  ASSERT_NEAR(load(o.view(), 0), 1.5, 1e-6);
  EXPECT_NEAR(output_of("decay_after_update"), 0.5 * (4 + 0.5 * (1 - 4)), 1e-6);
  EXPECT_NEAR(output_of("predict_undecayed"), 2 + 0.5 * (1 - 4), 1e-6);
  EXPECT_NEAR(output_of("no_prediction"), 2 + 0.5, 1e-6);
  EXPECT_NEAR(output_of("output_before_update"), 2, 1e-6);
  EXPECT_NEAR(output_of("output_of_old_state"), 4, 1e-6);
  EXPECT_NEAR(output_of("beta_on_value_only"), 2 + (0.5 - 2), 1e-6);
  EXPECT_NEAR(output_of("beta_twice"), 2 + 0.25 * (1 - 2), 1e-6);
  EXPECT_NEAR(output_of("initial_state_ignored"), 0.5, 1e-6);
  EXPECT_NEAR(output_of("old_state_not_subtracted"), 2 + 0.5, 1e-6);
  EXPECT_NEAR(output_of("writes_unread"), 2, 1e-6);
}

}  // namespace
}  // namespace kda::harness::mutate
