#include "cuda/simt/sanitizer.hpp"
#include "tests/cuda/planted_runs.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace kda::cuda::planted {
namespace {

constexpr int kTsanExit = 66;
constexpr int kFoundExit = 3;

/// Sanitizers are 5 to 20 times slower, and add nothing to what one seed more would show.
unsigned seeds() { return simt::sanitizer::asan() || simt::sanitizer::tsan() ? 3 : 20; }

class PlantTest : public testing::TestWithParam<Plant> {};

bool is_seeded(const Mode& mode) {
  return mode.order == simt::Order::kRandom || mode.order == simt::Order::kPct ||
         mode.copies == simt::CopyMode::kRandom;
}

/// A report names the kernel, the file and a line of it.
void expect_placed(const simt::Report& report) {
  EXPECT_FALSE(report.kernel.empty());
  EXPECT_EQ(report.file, "planted_kernels.hpp") << report.text();
  EXPECT_GT(report.line, 0) << report.text();
  EXPECT_NE(report.text().find("thread ("), std::string::npos);
}

TEST_P(PlantTest, IsJudgedRightInEverySeed) {
  const Plant& plant = GetParam();
  if (plant.kind == PlantKind::kRace && simt::sanitizer::tsan()) GTEST_SKIP() << "see below";
  unsigned best = 0;
  std::string row;
  for (const Mode& mode : all_modes()) {
    unsigned wrong = 0;
    unsigned reported = 0;
    for (unsigned seed = 1; seed <= seeds(); ++seed) {
      if (!is_seeded(mode) && seed > 1) break;  // nothing would differ
      const Outcome outcome = plant.run(mode.options(seed));
      if (outcome.wrong) ++wrong;
      if (outcome.fault) ++reported;
      if (outcome.fault) expect_placed(*outcome.fault);
      if (plant.kind == PlantKind::kCorrect) {
        EXPECT_FALSE(outcome.found()) << mode.name << " seed " << seed << ": "
                                      << (outcome.fault ? outcome.fault->text() : "wrong result");
      }
    }
    const unsigned times = is_seeded(mode) ? seeds() : 1;
    if (wrong + reported == times) best = seeds();
    row += " | " + mode.name + " " + std::to_string(wrong) + "w" + std::to_string(reported) + "r/" +
           std::to_string(times);
  }
  std::printf("[ planted  ] %s%s\n", plant.name.c_str(), row.c_str());
  if (plant.kind != PlantKind::kCorrect) {
    EXPECT_EQ(best, seeds()) << "no mode finds it in every seed";
  }
}

// In order, where the executor alone is blind to some of them.
TEST_P(PlantTest, RacesAreSeenByThreadSanitizer) {
  if (!simt::sanitizer::tsan()) GTEST_SKIP() << "built without ThreadSanitizer";
  if (GetParam().kind != PlantKind::kRace) GTEST_SKIP() << "no race";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto found = [](int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return code == kTsanExit || code == kFoundExit;
  };
  const simt::Options in_order{.workers = 1};
  EXPECT_EXIT(std::exit(GetParam().run(in_order).found() ? kFoundExit : 0), found, "");
}

std::string test_name(const testing::TestParamInfo<Plant>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, PlantTest, testing::ValuesIn(plants()), test_name);

}  // namespace
}  // namespace kda::cuda::planted
