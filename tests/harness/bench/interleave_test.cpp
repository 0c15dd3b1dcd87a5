#include "harness/bench/interleave.hpp"

#include "harness/bench/bench_text.hpp"
#include "reference/types/error.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

// Against programs that write what Google Benchmark would write, with times of their own.

namespace kda::harness {
namespace {

class Programs : public testing::Test {
 protected:
  Programs() { std::filesystem::create_directories(folder_); }
  ~Programs() override { std::filesystem::remove_all(folder_); }

  /// A program whose one benchmark takes `microseconds`, and 0.1% more with every call.
  std::string program(const std::string& name, int microseconds) {
    const auto path = folder_ / name;
    std::ofstream(path)
        << "#!/bin/bash\n"
           "for word; do case $word in --benchmark_out=*) out=${word#*=};; esac; done\n"
           "echo noise on standard output\n"
           "echo x >> "
        << path.string()
        << ".calls\n"
           "n=$(wc -l < "
        << path.string()
        << ".calls)\n"
           "echo '{\"context\": {\"kdacheck_bench\": \"1\"}, \"benchmarks\": [{\"name\": \"x\", "
           "\"run_name\": \"x\", \"run_type\": \"iteration\", \"real_time\": '$(("
        << 1000 * microseconds << " + n * " << microseconds
        << "))', \"cpu_time\": 1, \"time_unit\": \"ns\"}, "
           "{\"name\": \"x_mean\", \"run_name\": \"x\", \"run_type\": \"aggregate\", "
           "\"real_time\": 5}]}' > $out\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }

  static SpeedComparison run(const std::string& a, const std::string& b, int rounds = 9) {
    Interleave wanted;
    wanted.first = a;
    wanted.second = b;
    wanted.run.repetitions = rounds;
    return interleave(wanted);
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("kdacheck_interleave_" + std::to_string(getpid()));
};

TEST_F(Programs, EqualOnesAreTheSameAndSlowerOnesSlower) {
  const std::string a = program("a", 100);
  SpeedComparison comparison = run(a, program("b", 100));
  ASSERT_EQ(comparison.lines.size(), 1U);
  EXPECT_EQ(comparison.lines[0].verdict, SpeedVerdict::kSame) << comparison.lines[0].reason;
  EXPECT_EQ(comparison.lines[0].base_repetitions, 9U);
  EXPECT_EQ(comparison.band_source, "A/A run");
  comparison = run(a, program("c", 110));
  EXPECT_EQ(comparison.lines[0].verdict, SpeedVerdict::kSlower) << comparison.lines[0].reason;
  EXPECT_EQ(comparison.exit_status(), Exit::kFailed);
  EXPECT_EQ(run(a, a, 3).lines[0].verdict, SpeedVerdict::kNone) << "too few rounds";
}

TEST_F(Programs, OneOfEachAndUnknownNamesAreRefused) {
  const std::string a = program("a", 100);
  EXPECT_THROW(static_cast<void>(run(a, "fast")), Error);
  EXPECT_THROW(static_cast<void>(run("nobody", "fast")), Error);
}

TEST_F(Programs, OneThatWritesNothingIsNamed) {
  const auto path = folder_ / "silent";
  std::ofstream(path) << "#!/bin/bash\necho no such thing >&2\nexit 3\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  BenchRun wanted;
  wanted.program = path;
  try {
    static_cast<void>(run_benchmarks(wanted));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBenchFileInvalid);
    EXPECT_NE(error.message().find("exit status 3): no such thing"), std::string::npos)
        << error.message();
  }
  wanted.program = folder_ / "missing";
  EXPECT_THROW(static_cast<void>(run_benchmarks(wanted)), Error);
}

TEST(GlobToRegex, MatchesWholeNamesAndLeavesOutHowTimeIsTaken) {
  const auto matches = [](const std::string& glob, const std::string& name) {
    return std::regex_match(name, std::regex(glob_to_regex(glob), std::regex::extended));
  };
  EXPECT_TRUE(matches("impl/fast/*", "impl/fast/T512_H2/real_time"));
  EXPECT_TRUE(matches("impl/fast/T512_H2", "impl/fast/T512_H2/real_time"));
  EXPECT_FALSE(matches("impl/fast/T512", "impl/fast/T512_H2/real_time"));
  EXPECT_TRUE(matches("gpu/*_N?_*", "gpu/cuda-recurrent/decode_N1_H64_f32/manual_time"));
  EXPECT_FALSE(matches("a.c", "abc"));
  EXPECT_FALSE(matches("x", "impl/x"));
}

TEST(BenchText, ShowsMediansSkipsAndErrors) {
  const auto entry = [](const char* name) {
    return nlohmann::json{{"name", name}, {"real_time", 2.0}, {"time_unit", "ms"}};
  };
  nlohmann::json file{{"context", nlohmann::json::object()},
                      {"benchmarks", nlohmann::json::array()}};
  nlohmann::json timed = entry("timed");
  timed["fraction"] = 1.5;
  timed["floor_s"] = 3e-3;
  nlohmann::json skipped = entry("gpu/a");
  skipped["error_occurred"] = true;
  skipped["error_message"] = "skipped: gpu: none";
  nlohmann::json wrong = skipped;
  wrong["name"] = "wrong";
  wrong["error_message"] = "wrong result: o";
  file["benchmarks"] = {timed, skipped, wrong};
  const BenchFile parsed = parse_bench_file(file, "f", Metric::kRealTime);
  const std::string text = to_text(parsed);
  EXPECT_NE(text.find("2 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("1.500  impossible"), std::string::npos) << text;
  EXPECT_NE(text.find("skipped 1 benchmarks: gpu: none"), std::string::npos) << text;
  EXPECT_NE(text.find("ERROR  wrong: wrong result: o"), std::string::npos) << text;
  EXPECT_EQ(count_failed(parsed), 1U);
}

}  // namespace
}  // namespace kda::harness
