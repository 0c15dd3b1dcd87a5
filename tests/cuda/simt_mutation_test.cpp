#include "cuda/simt/mutation.hpp"
#include "cuda/simt/sanitizer.hpp"
#include "tests/cuda/planted_runs.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

// Faults that the executor injects are found like the ones that stand in a kernel's source.

namespace kda::cuda::planted {
namespace {

std::vector<Plant> correct_kernels() {
  std::vector<Plant> correct;
  for (const Plant& plant : plants()) {
    if (plant.kind == PlantKind::kCorrect) correct.push_back(plant);
  }
  return correct;
}

class MutationTest : public testing::TestWithParam<Plant> {
 protected:
  simt::SiteLog sites_;
  simt::Counters counters_;

  void SetUp() override {
    const Outcome clean = GetParam().run({.workers = 1, .sites = &sites_});
    ASSERT_FALSE(clean.found());
    counters_ = clean.counters;
  }
};

bool is_found(const Plant& plant, const simt::Mutation& mutation) {
  return std::ranges::any_of(all_modes(), [&](const Mode& mode) {
    simt::Options options = mode.options(1);
    options.mutation = &mutation;
    return plant.run(options).found();
  });
}

TEST_P(MutationTest, EveryFaultInjectedIsFound) {
  if (simt::sanitizer::tsan()) GTEST_SKIP() << "a dropped barrier is a race that ends the run";
  const auto mutations = sites_.mutations();
  ASSERT_GE(mutations.size(), sites_.entries().size());
  for (const simt::Mutation& mutation : mutations) {
    EXPECT_TRUE(is_found(GetParam(), mutation)) << mutation.text();
  }
}

TEST_P(MutationTest, SitesLieInTheKernelAndAreListedOnce) {
  std::set<std::string> seen;
  for (const simt::Mutation& mutation : sites_.mutations()) {
    EXPECT_TRUE(seen.insert(mutation.text()).second) << mutation.text();
    EXPECT_NE(mutation.text().find("planted_kernels.hpp:"), std::string::npos) << mutation.text();
  }
}

TEST_P(MutationTest, LoggingAndMutationsElsewhereChangeNothing) {
  simt::Mutation elsewhere = sites_.mutations().front();
  elsewhere.site.line = 1;
  const Outcome other = GetParam().run({.workers = 1, .mutation = &elsewhere});
  EXPECT_FALSE(other.found());
  EXPECT_EQ(other.counters, counters_);
  EXPECT_EQ(GetParam().run({}).counters, counters_);
}

std::string test_name(const testing::TestParamInfo<Plant>& parameter) {
  std::string name = parameter.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, MutationTest, testing::ValuesIn(correct_kernels()), test_name);

}  // namespace
}  // namespace kda::cuda::planted
