#include "harness/mutate/score.hpp"

#include "harness/mutate/judging.hpp"
#include "harness/mutate/score_report.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace kda::harness::mutate {
namespace {

MutantScore scored(const char* name, Class effect_class, bool killed) {
  MutantScore m;
  m.name = name;
  m.effect_class = effect_class;
  m.alive = true;
  if (killed) m.killed["p"] = "case: failed over_bound";
  return m;
}

MutationScore with(std::vector<MutantScore> mutants) {
  MutationScore score;
  score.policies = {"p", "fla"};
  score.mutants = std::move(mutants);
  return score;
}

TEST(Class, FollowsTheEffect) {
  EXPECT_EQ(class_of(10.5), Class::kGross);
  EXPECT_EQ(class_of(10), Class::kSubtle);
  EXPECT_EQ(class_of(1), Class::kSubtle);
  EXPECT_EQ(class_of(0.99), Class::kWithin);
}

TEST(Complaints, NameEverySurvivorWithoutAnExplanation) {
  const auto score = with({scored("a", Class::kGross, true), scored("b", Class::kWithin, false)});
  const auto complaints = score.complaints();
  ASSERT_EQ(complaints.size(), 2U) << "one for b, one for the share of survivors";
  EXPECT_EQ(complaints[0], "b survives");
  EXPECT_NE(complaints[1].find("1 of 2 (50%) survive"), std::string::npos);
}

TEST(Complaints, AnExplanationExcusesOnlyWhatIsWithin) {
  std::vector<MutantScore> mutants;
  for (int i = 0; i < 39; ++i) mutants.push_back(scored("k", Class::kGross, true));
  mutants.push_back(scored("s", Class::kWithin, false));
  mutants.back().explanation = "below rounding";
  EXPECT_TRUE(with(mutants).complaints().empty());
  for (const Class c : {Class::kGross, Class::kSubtle, Class::kProtocol}) {
    mutants.back().effect_class = c;
    EXPECT_EQ(with(mutants).complaints().size(), 1U);
  }
}

TEST(Complaints, AMutantThatChangesNothingMustBeExplainedToo) {
  auto dead = scored("d", Class::kWithin, false);
  dead.alive = false;
  EXPECT_EQ(with({dead}).complaints().size(), 1U);
  EXPECT_EQ(with({dead}).total(), 0);
  dead.explanation = "equivalent";
  EXPECT_TRUE(with({dead}).complaints().empty());
}

TEST(Complaints, WhatIsDeclaredHarmlessMustBe) {
  auto harmless = scored("h", Class::kProtocol, false);
  harmless.alive = false;
  harmless.harmless = true;
  harmless.explanation = "the same value twice";
  EXPECT_TRUE(with({harmless}).complaints().empty());
  EXPECT_EQ(with({harmless}).total(), 0);
  auto moved = harmless;
  moved.moved = "  another line";
  EXPECT_EQ(with({moved}).complaints().size(), 1U);
  auto killed = scored("h", Class::kGross, true);
  killed.harmless = true;
  auto within = scored("h", Class::kWithin, false);
  within.harmless = true;
  within.explanation = "no";
  for (const auto& m : {killed, within}) {
    const auto complaints = with({m}).complaints();
    ASSERT_FALSE(complaints.empty());
    EXPECT_EQ(complaints[0], "h is declared harmless and has an effect");
  }
}

TEST(Score, CountsByClassAndPolicy) {
  auto both = scored("a", Class::kGross, true);
  both.killed["fla"] = "case: failed over_bound";
  const auto score =
      with({both, scored("b", Class::kGross, true), scored("c", Class::kSubtle, false)});
  EXPECT_EQ(score.total(), 3);
  EXPECT_EQ(score.total(Class::kGross), 2);
  EXPECT_EQ(score.killed("p", Class::kGross), 2);
  EXPECT_EQ(score.killed("fla", Class::kGross), 1);
  EXPECT_EQ(score.killed("p"), 2);
  const std::string text = to_text(score);
  EXPECT_NE(text.find("SURVIVES  c"), std::string::npos) << text;
  const auto json = to_json(score);
  EXPECT_EQ(json["format"], "kdacheck-mutation");
  EXPECT_EQ(json["mutants"][2]["state"], "survived");
  EXPECT_EQ(json["counts"]["gross"]["fla"], 1);
}

TEST(Harmless, DeclarationsSayWhichAndWhy) {
  std::set<std::string> names;
  for (const HarmlessMutant& declared : harmless_mutants()) {
    EXPECT_TRUE(names.insert(declared.name).second) << declared.name;
    EXPECT_TRUE(declared.name.starts_with("cuda-")) << declared.name;
    EXPECT_FALSE(declared.text.empty()) << declared.name;
    EXPECT_FALSE(declared.why.empty()) << declared.name;
  }
}

TEST(Explanations, NameMutantsThatExist) {
  std::set<std::string> names;
  for (const Mutant& m : value_mutants()) names.insert(m.name);
  for (const Implementation& faulty : protocol_mutants()) names.insert(faulty.name);
  for (const auto& [name, why] : explained_survivors()) {
    EXPECT_FALSE(why.empty()) << name;
    const bool of_a_kernel = name.starts_with("cuda-");
    EXPECT_TRUE(of_a_kernel || names.contains(name)) << name;
  }
}

class SuiteFile : public testing::Test {
 protected:
  std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("kda_suite_" + std::to_string(getpid()));

  ~SuiteFile() override { std::filesystem::remove(file_); }
  void write(const char* text) const { std::ofstream(file_) << text; }
};

TEST_F(SuiteFile, HoldsCaseLinesAndFlags) {
  write("# a comment\n\n\"op=chunk_kda T=3 H=1 K=4 V=4\" kernels laws # more\n");
  const auto suite = read_suite(file_, "/nowhere");
  ASSERT_EQ(suite.size(), 1U);
  EXPECT_TRUE(suite[0].kernels);
  EXPECT_TRUE(suite[0].laws);
  EXPECT_TRUE(suite[0].test_case.expected.has_value());
}

TEST_F(SuiteFile, NamesTheLineThatIsWrong) {
  write("\n\"op=chunk_kda T=3 H=1 K=4 V=4\" kernel\n");
  try {
    static_cast<void>(read_suite(file_, "/nowhere"));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCaseLineInvalid);
    EXPECT_NE(error.message().find(":2: wanted kernels or laws, got kernel"), std::string::npos);
  }
}

}  // namespace
}  // namespace kda::harness::mutate
