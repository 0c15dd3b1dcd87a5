#include "harness/bench/counter_compare.hpp"

#include "harness/bench/counter_run.hpp"
#include "reference/types/error.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;

/// Two cases of the fixed list, and one compiled kernel.
const json& report() {
  static const json made = [] {
    json r = counter_report({counter_cases().front(), counter_cases().back()}, "no such folder");
    r["kernels"] = {{{"kernel", "recurrent_kernel<float, true, 128>"},
                     {"file", "recurrent_kernels.cu"},
                     {"arch", "sm_90a"},
                     {"registers", 114},
                     {"spill_stores", 0},
                     {"threads", 128},
                     {"blocks_per_sm", 4},
                     {"limited_by", "registers"}}};
    return r;
  }();
  return made;
}

CountComparison compare(const json& base, const json& changed) {
  return compare_counters(base, changed, "base.json", "new.json");
}

TEST(CompareCounters, EqualFilesAreTheSame) {
  const CountComparison comparison = compare(report(), report());
  EXPECT_EQ(comparison.exit_status(), Exit::kSuccess);
  EXPECT_TRUE(comparison.lines.empty());
  EXPECT_GT(comparison.same, 100U);
}

/// Adds `more` to a counter of the first case's launch.
json with_more(const char* counter, std::int64_t more) {
  json changed = report();
  for (json* counts :
       {&changed["cases"][0]["launches"][0]["counters"], &changed["cases"][0]["total"]})
    (*counts)[counter] = (*counts)[counter].get<std::int64_t>() + more;
  return changed;
}

TEST(CompareCounters, OneMoreBarrierOrLoadIsNamedAndExitsWithOne) {
  for (const char* counter :
       {"path_barriers", "block_barriers", "global_load.sectors", "global_load.requests",
        "shared_load.conflicts", "special", "atomics", "copy_groups", "mma"}) {
    const CountComparison comparison = compare(report(), with_more(counter, 1));
    EXPECT_EQ(comparison.exit_status(), Exit::kFailed) << counter;
    ASSERT_EQ(comparison.lines.size(), 2U) << "the launch and the total";
    const std::string text = to_text(comparison);
    EXPECT_NE(text.find("cuda-recurrent: recurrent (decode_kv_f32, launch 1)"), std::string::npos)
        << text;
    EXPECT_NE(text.find(std::string(counter) + ": "), std::string::npos) << text;
    EXPECT_EQ(to_json(comparison)["counts"]["grew"], 2);
  }
}

TEST(CompareCounters, FewerIsToldAndNoFailure) {
  const CountComparison comparison = compare(with_more("global_load.sectors", 8), report());
  EXPECT_EQ(comparison.exit_status(), Exit::kSuccess);
  EXPECT_EQ(comparison.count(CountVerdict::kFewer), 2U);
}

TEST(CompareCounters, RegistersAndResidentBlocks) {
  json changed = report();
  changed["kernels"][0]["registers"] = 130;
  changed["kernels"][0]["blocks_per_sm"] = 3;
  const CountComparison comparison = compare(report(), changed);
  EXPECT_EQ(comparison.count(CountVerdict::kGrew), 2U) << "fewer resident blocks are worse";
  EXPECT_EQ(comparison.exit_status(), Exit::kFailed);
  EXPECT_EQ(compare(changed, report()).exit_status(), Exit::kSuccess);
}

TEST(CompareCounters, WhatIsOnOneSideOnlyHasNoVerdict) {
  json fewer = report();
  fewer["cases"].erase(1);
  CountComparison comparison = compare(report(), fewer);
  EXPECT_EQ(comparison.count(CountVerdict::kNone), 2U) << "launch and total";
  EXPECT_EQ(comparison.lines[0].reason, "only in BASE");
  EXPECT_NE(to_text(comparison).find("bootstrap_8"), std::string::npos);
  comparison = compare(fewer, report());
  EXPECT_EQ(comparison.lines[0].reason, "only in NEW");

  json lost = report();
  lost["cases"][0]["launches"][0]["counters"].erase("mma");
  comparison = compare(report(), lost);
  EXPECT_EQ(comparison.lines.at(0).counter, "mma");
  EXPECT_EQ(comparison.lines.at(0).verdict, CountVerdict::kNone);

  json reshaped = report();
  reshaped["cases"][0]["launches"][0]["grid"][0] = 99;
  comparison = compare(report(), reshaped);
  EXPECT_EQ(comparison.lines.at(0).reason, "launched in another shape");

  json empty = report();
  empty["cases"] = json::array();
  empty["kernels"] = json::array();
  EXPECT_EQ(compare(report(), empty).exit_status(), Exit::kUnavailable);
  EXPECT_FALSE(compare(report(), empty).notes.empty());
}

// Deeper than a stack: nothing may print it by recursion.
TEST(CompareCounters, RefusesWhatIsNestedTooDeepToPrint) {
  constexpr std::size_t kDepth = 200'000;
  for (const char* key : {"format", "version", "cases", "kernels"}) {
    json good = report();
    good[key] = "@";
    std::string text = good.dump();
    text.replace(text.find("\"@\""), 3, std::string(kDepth, '[') + std::string(kDepth, ']'));
    const json bad = json::parse(text);
    EXPECT_THROW(static_cast<void>(compare(report(), bad)), Error) << key;
  }
}

TEST(CompareCounters, RefusesOtherFilesAndVersions) {
  json later = report();
  later["version"] = 2;
  json huge = report();
  huge["cases"][0]["total"]["mma"] = std::uint64_t{1} << 63U;
  EXPECT_THROW(static_cast<void>(compare(report(), huge)), Error);
  json text = report();
  text["cases"][0]["total"]["mma"] = 1.5;
  json no_launches = report();
  no_launches["cases"][0].erase("launches");
  json no_name = report();
  no_name["kernels"][0]["kernel"] = 7;
  json twice = report();
  twice["kernels"].push_back(twice["kernels"][0]);
  for (const json& bad : {json(1), json::array(), json::object(), json{{"format", "other"}}, later,
                          text, no_launches, no_name, twice}) {
    try {
      static_cast<void>(compare(report(), bad));
      ADD_FAILURE() << bad.dump().substr(0, 80);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBenchFileInvalid);
      EXPECT_NE(error.message().find("new.json"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace kda::harness
