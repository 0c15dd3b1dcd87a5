#include "harness/bench/bench_compare.hpp"

#include "harness/bench/statistics.hpp"
#include "reference/types/error.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

// Simulated times and edited files; nothing is timed here.

namespace kda::harness {
namespace {

using nlohmann::json;

json bench_json(const std::map<std::string, std::vector<double>>& lines) {
  json file{{"context", {{"kdacheck_bench", kBenchVersion}, {"host_name", "here"}}},
            {"benchmarks", json::array()}};
  for (const auto& [name, times] : lines) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      file["benchmarks"].push_back({{"name", name},
                                    {"run_name", name},
                                    {"run_type", "iteration"},
                                    {"repetition_index", i},
                                    {"real_time", times[i]},
                                    {"cpu_time", times[i]},
                                    {"time_unit", "ms"}});
    }
  }
  return file;
}

BenchFile bench_file(const std::map<std::string, std::vector<double>>& lines) {
  return parse_bench_file(bench_json(lines), "simulated.json", Metric::kRealTime);
}

/// Normal variates by Box and Muller.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  double uniform() { return (static_cast<double>(next_random(state_) >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::uint64_t state_;
};

/// How repetition i of a program that takes 1 came out.
using Machine = std::function<double(Noise&, int)>;

/// Rounds of A B A', each side with its own noise; B takes `slowdown` times as long.
SpeedVerdict simulate(const Machine& machine, int repetitions, double slowdown, bool with_aa,
                      std::uint64_t seed) {
  Noise noise(seed * 1000003);
  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> again;
  for (int i = 0; i < repetitions; ++i) {
    a.push_back(machine(noise, i));
    b.push_back(slowdown * machine(noise, i));
    again.push_back(machine(noise, i));
  }
  const BenchFile base = bench_file({{"x", a}});
  const BenchFile changed = bench_file({{"x", b}});
  const BenchFile aa = bench_file({{"x", again}});
  return compare_speed(base, changed, with_aa ? &aa : nullptr).lines.front().verdict;
}

int verdicts(SpeedVerdict wanted, const Machine& machine, int repetitions, double slowdown,
             bool with_aa) {
  int count = 0;
  for (std::uint64_t trial = 1; trial <= 100; ++trial)
    if (simulate(machine, repetitions, slowdown, with_aa, trial) == wanted) ++count;
  return count;
}

double quiet(Noise& n, int) { return std::exp(0.005 * n.normal()); }
double usual(Noise& n, int) { return std::exp(0.015 * n.normal()); }
/// One repetition in ten is disturbed and takes up to twice as long.
double disturbed(Noise& n, int) {
  return std::exp(0.01 * n.normal()) * (n.uniform() < 0.1 ? 1 + n.uniform() : 1);
}
/// The clock falls by 3% on the way.
double drifting(Noise& n, int i) { return (1 + 0.003 * i) * std::exp(0.01 * n.normal()); }
/// Times come in whole ticks: many ties.
double ticking(Noise& n, int) { return std::round(200 * std::exp(0.01 * n.normal())) / 200; }
double noisy(Noise& n, int) { return std::exp(0.1 * n.normal()); }

TEST(SpeedRule, EqualProgramsAreTheSameInAtLeast95Of100Trials) {
  for (const bool with_aa : {false, true}) {
    EXPECT_GE(verdicts(SpeedVerdict::kSame, quiet, 9, 1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSame, usual, 9, 1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSame, disturbed, 9, 1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSame, drifting, 9, 1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSame, ticking, 9, 1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSame, quiet, 5, 1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSame, usual, 30, 1, with_aa), 95);
  }
}

TEST(SpeedRule, TenPercentIsFound) {
  for (const bool with_aa : {false, true}) {
    EXPECT_GE(verdicts(SpeedVerdict::kSlower, quiet, 9, 1.1, with_aa), 99);
    EXPECT_GE(verdicts(SpeedVerdict::kSlower, usual, 9, 1.1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSlower, drifting, 9, 1.1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSlower, ticking, 9, 1.1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kFaster, usual, 9, 1 / 1.1, with_aa), 95);
    EXPECT_GE(verdicts(SpeedVerdict::kSlower, quiet, 5, 1.1, with_aa), 95);
  }
}

TEST(SpeedRule, ANoisyMachineGivesNoVerdictButForLargeDifferences) {
  EXPECT_EQ(verdicts(SpeedVerdict::kSame, noisy, 9, 1, true) +
                verdicts(SpeedVerdict::kNone, noisy, 9, 1, true),
            100);
  EXPECT_GE(verdicts(SpeedVerdict::kNone, noisy, 9, 1, true), 95);
  EXPECT_GE(verdicts(SpeedVerdict::kNone, noisy, 9, 1.1, true), 80);
  EXPECT_GE(verdicts(SpeedVerdict::kSlower, noisy, 9, 3, true), 95);
}

TEST(SpeedRule, ADifferenceWithinTheBandOfTheAARunIsNone) {
  const BenchFile base = bench_file({{"x", {1, 1.001, 1.002, 1.003, 1.004, 1.005}}});
  const BenchFile changed = bench_file({{"x", {1.03, 1.031, 1.032, 1.033, 1.034, 1.035}}});
  const BenchFile calm = base;
  const BenchFile shaken = bench_file({{"x", {1.032, 1.033, 1.034, 1.035, 1.036, 1.037}}});
  EXPECT_EQ(compare_speed(base, changed, &calm).lines[0].verdict, SpeedVerdict::kSlower);
  EXPECT_EQ(compare_speed(base, changed, &shaken).lines[0].verdict, SpeedVerdict::kSame);
}

TEST(CompareSpeed, SaysSlowerAndExitsWithOne) {
  const BenchFile base = bench_file({{"a", std::vector(9, 1.0)}, {"b", std::vector(9, 1.0)}});
  const BenchFile changed = bench_file({{"a", std::vector(9, 1.2)}, {"b", std::vector(9, 0.8)}});
  const SpeedComparison comparison = compare_speed(base, changed);
  EXPECT_EQ(comparison.exit_status(), Exit::kFailed);
  EXPECT_NEAR(*comparison.lines[0].ratio, 1.2, 1e-12);
  EXPECT_EQ(comparison.lines[1].verdict, SpeedVerdict::kFaster);
  const std::string text = to_text(comparison);
  EXPECT_NE(text.find("slower      a "), std::string::npos) << text;
  const json j = to_json(comparison);
  EXPECT_EQ(j["counts"]["slower"], 1);
  EXPECT_EQ(j["lines"][0]["verdict"], "slower");
  EXPECT_EQ(compare_speed(base, base).exit_status(), Exit::kSuccess);
}

/// The reason of the only line that both files or one of them have.
std::string reason(const json& base, const json& changed) {
  const SpeedComparison comparison =
      compare_speed(parse_bench_file(base, "b", Metric::kRealTime),
                    parse_bench_file(changed, "n", Metric::kRealTime));
  EXPECT_EQ(comparison.count(SpeedVerdict::kSame), 0U);
  EXPECT_FALSE(to_text(comparison).empty());
  EXPECT_NE(comparison.exit_status(), Exit::kSuccess);
  return comparison.lines.at(0).reason;
}

TEST(CompareSpeed, LinesThatCannotBeComparedAreNamedAndNeverTheSame) {
  const json good = bench_json({{"x", std::vector(9, 1.0)}});
  EXPECT_EQ(reason(good, bench_json({})), "only in BASE");
  EXPECT_EQ(reason(bench_json({}), good), "only in NEW");
  EXPECT_EQ(reason(good, bench_json({{"x", {1.0}}})),
            "too few repetitions: wanted 5 of each, got 9 and 1");
  json zero = good;
  zero["benchmarks"][3]["real_time"] = 0;
  EXPECT_EQ(reason(zero, good), "BASE: real_time of repetition 3 is 0, not a positive time");
  json negative = good;
  negative["benchmarks"][0]["real_time"] = -1.5;
  EXPECT_EQ(reason(good, negative), "NEW: real_time of repetition 0 is -1.5, not a positive time");
  json absent = good;
  absent["benchmarks"][0].erase("real_time");
  EXPECT_EQ(reason(good, absent), "NEW: real_time of repetition 0 is no number");
  json unit = good;
  unit["benchmarks"][0]["time_unit"] = "fortnights";
  EXPECT_EQ(reason(good, unit), "NEW: time_unit 'fortnights' is not known");
}

TEST(CompareSpeed, ErrorsAndSkipsOfBenchmarks) {
  const json good = bench_json({{"x", std::vector(9, 1.0)}});
  json wrong = good;
  wrong["benchmarks"][0]["error_occurred"] = true;
  wrong["benchmarks"][0]["error_message"] = "wrong result: o";
  EXPECT_EQ(reason(good, wrong), "NEW: error: wrong result: o");
  EXPECT_EQ(compare_speed(parse_bench_file(good, "b", Metric::kRealTime),
                          parse_bench_file(wrong, "n", Metric::kRealTime))
                .exit_status(),
            Exit::kFailed)
      << "had times, and is wrong now";
  json skipped = wrong;
  skipped["benchmarks"][0]["error_message"] = "skipped: no GPU";
  EXPECT_EQ(reason(good, skipped), "NEW: skipped: no GPU");
}

TEST(BenchFile, TakesRepetitionsUnitsAndCountersAndLeavesAggregates) {
  json file = bench_json({{"x", {2, 4}}});
  file["benchmarks"][0]["tokens/s"] = 5.0;
  file["benchmarks"].push_back({{"name", "x_median"},
                                {"run_name", "x"},
                                {"run_type", "aggregate"},
                                {"real_time", 3},
                                {"time_unit", "ms"}});
  const BenchFile parsed = parse_bench_file(file, "f", Metric::kRealTime);
  ASSERT_EQ(parsed.lines.size(), 1U);
  EXPECT_EQ(parsed.lines[0].seconds, (std::vector{2e-3, 4e-3}));
  EXPECT_EQ(parsed.lines[0].counters.at("tokens/s"), 5);
  EXPECT_EQ(parsed.context_or("host_name", ""), "here");
}

TEST(BenchFile, RefusesOtherToolsAndVersions) {
  const json good = bench_json({{"x", {1}}});
  json later = good;
  later["context"]["kdacheck_bench"] = "2";
  const json bad[] = {json(3),
                      json::array(),
                      json::object(),
                      json{{"format", "kdacheck-counters"}},
                      json{{"context", 1}, {"benchmarks", json::array()}},
                      json{{"context", json::object()}, {"benchmarks", {1, 2}}},
                      json{{"context", json::object()}, {"benchmarks", {{{"real_time", 1}}}}},
                      later};
  for (const json& file : bad) {
    try {
      static_cast<void>(parse_bench_file(file, "bad.json", Metric::kRealTime));
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBenchFileInvalid);
      EXPECT_NE(error.message().find("bad.json"), std::string::npos);
    }
  }
  // Deeper than a stack: nothing may print it by recursion.
  constexpr std::size_t kDepth = 200'000;
  const json nested = json::parse(R"({"context": {}, "benchmarks": [)" + std::string(kDepth, '[') +
                                  std::string(kDepth, ']') + "]}");
  EXPECT_THROW(static_cast<void>(parse_bench_file(nested, "deep", Metric::kRealTime)), Error);
  json foreign = good;
  foreign["context"].erase("kdacheck_bench");
  const BenchFile ours = parse_bench_file(good, "ours", Metric::kRealTime);
  const BenchFile theirs = parse_bench_file(foreign, "theirs", Metric::kRealTime);
  EXPECT_THROW(static_cast<void>(compare_speed(ours, theirs)), Error);
  EXPECT_EQ(compare_speed(theirs, theirs).notes.size(), 1U);
}

TEST(CompareSpeed, NotesWhatDiffersBetweenTheMachines) {
  json other = bench_json({{"x", std::vector(9, 1.0)}});
  other["context"]["host_name"] = "there";
  const SpeedComparison comparison = compare_speed(bench_file({{"x", std::vector(9, 1.0)}}),
                                                   parse_bench_file(other, "n", Metric::kRealTime));
  ASSERT_EQ(comparison.notes.size(), 1U);
  EXPECT_EQ(comparison.notes[0], "host_name differs: here | there");
}

}  // namespace
}  // namespace kda::harness
