#include "harness/run/laws.hpp"

#include "harness/case/case_line.hpp"
#include "harness/mutate/mutant.hpp"
#include "harness/run/case_edit.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

constexpr const char* kPacked =
    "op=chunk_kda lens=5,0,40,33 H=2 HV=4 K=20 V=12 dtype=f32 chunk=32 initial_state=1 "
    "final_state=1 v_first=1";
constexpr const char* kBatch = "op=recurrent_kda B=3 T=7 H=2 K=8 V=8 gate=softplus l2norm=1";
constexpr const char* kOne =
    "op=chunk_kda T=70 H=2 HV=4 K=16 V=24 dtype=f32 initial_state=1 final_state=1";

/// Its middle row is the first that causal_edit changes.
constexpr const char* kShort = "op=chunk_kda T=20 H=1 K=16 V=8 dtype=f32";

Case made(const char* line) { return make_case(parse_case_line(line)); }

std::map<std::string, LawResult> laws_of(const Implementation& implementation, const char* line) {
  std::map<std::string, LawResult> by_name;
  for (LawResult& law : check_laws(implementation, made(line))) by_name.emplace(law.law, law);
  return by_name;
}

TEST(Laws, HoldForHonestImplementations) {
  for (const char* name : {"reference", "chunked", "fast", "peer-f32", "cuda-recurrent"}) {
    for (const char* line : {kPacked, kBatch, kOne}) {
      const auto laws = laws_of(find_implementation(name), line);
      EXPECT_EQ(laws.size(), 11U);
      for (const auto& [law, result] : laws) {
        EXPECT_NE(result.verdict, Verdict::kFailed) << name << " " << law << ": " << result.detail;
      }
    }
  }
}

TEST(Laws, ApplyWhereTheyCan) {
  const auto& peer = find_implementation("peer-f32");
  const auto packed = laws_of(peer, kPacked);
  const auto batch = laws_of(peer, kBatch);
  const auto one = laws_of(peer, kOne);
  for (const char* law :
       {"inputs_unchanged", "repeat", "causal_edit", "split", "heads_permuted", "scaled"}) {
    EXPECT_EQ(packed.at(law).verdict, Verdict::kPassed) << law;
    EXPECT_EQ(batch.at(law).verdict, Verdict::kPassed) << law;
    EXPECT_EQ(one.at(law).verdict, Verdict::kPassed) << law;
  }
  EXPECT_EQ(packed.at("causal_cut").verdict, Verdict::kPassed);
  EXPECT_EQ(packed.at("separate").verdict, Verdict::kPassed);
  EXPECT_EQ(batch.at("sequences_permuted").verdict, Verdict::kPassed);
  EXPECT_EQ(one.at("untouched").verdict, Verdict::kPassed);
  EXPECT_EQ(one.at("padding").verdict, Verdict::kPassed);
  EXPECT_EQ(batch.at("untouched").verdict, Verdict::kUnsupported) << "gates are computed";
}

TEST(Laws, ACaseThatMustBeRefusedHasNone) {
  EXPECT_TRUE(
      check_laws(find_implementation("peer-f32"), made("op=chunk_kda T=4 chunk=16")).empty());
}

/// The law that a mutant breaks.
struct Broken {
  const char* mutant;
  const char* line;
  const char* law;
};

TEST(Laws, EachIsBrokenByAMutant) {
  using namespace mutate;
  for (const Broken& b :
       {Broken{"query_unmasked", kOne, "causal_edit"},
        Broken{"gate_anchor_future", kShort, "causal_edit"},
        Broken{"tail_takes_next_rows", kPacked, "separate"},
        Broken{"state_of_last_sequence", kPacked, "sequences_permuted"},
        Broken{"gate_of_first_head", kOne, "heads_permuted"},
        Broken{"beta_of_next_token", kOne, "split"},
        Broken{"state_lost_at_chunk", kOne, "untouched"},
        Broken{"output_one_token_late", kOne, "split"}, Broken{"bounds_end_early", kOne, "padding"},
        Broken{"output_small_flushed", kOne, "scaled"},
        Broken{"final_before_last_token", kOne, "padding"}}) {
    const auto mutants = value_mutants();
    const auto found = std::ranges::find(mutants, b.mutant, &Mutant::name);
    ASSERT_NE(found, mutants.end()) << b.mutant;
    const auto laws = laws_of(implementation_of(*found), b.line);
    EXPECT_EQ(laws.at(b.law).verdict, Verdict::kFailed) << b.mutant << " keeps " << b.law;
  }
  for (const Implementation& faulty : protocol_mutants()) {
    if (faulty.name == "value_overwritten" || faulty.name == "beta_changed") {
      EXPECT_EQ(laws_of(faulty, kOne).at("inputs_unchanged").verdict, Verdict::kFailed)
          << faulty.name;
    }
    if (faulty.name == "unsteady_row") {
      EXPECT_EQ(laws_of(faulty, kOne).at("repeat").verdict, Verdict::kFailed);
    }
  }
}

TEST(CaseEdit, SliceJoinAndRollAreTensorsOfPython) {
  Tensor x(Dtype::kF32, {2, 3, 2});
  for (std::int64_t i = 0; i < 12; ++i) x.store(i, static_cast<double>(i));
  EXPECT_EQ(to_f64(slice(x, 1, 1, 2).view()), (std::vector<double>{2, 3, 4, 5, 8, 9, 10, 11}));
  EXPECT_EQ(to_f64(rolled(x, 1, 1).view()),
            (std::vector<double>{2, 3, 4, 5, 0, 1, 8, 9, 10, 11, 6, 7}));
  EXPECT_EQ(to_f64(joined(slice(x, 0, 1, 1), slice(x, 0, 0, 1), 0).view()),
            (std::vector<double>{6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace kda::harness
