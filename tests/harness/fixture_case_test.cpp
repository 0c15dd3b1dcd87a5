#include "harness/case.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <gtest/gtest.h>

namespace kda::harness::testing {
namespace {

TEST(Op, NamesAndBack) {
  for (const Op op : {Op::kKdaPrefill, Op::kChunkKda, Op::kRecurrentKda, Op::kFit, Op::kPredict}) {
    EXPECT_EQ(find_op(name(op)), op);
  }
  EXPECT_EQ(name(Op::kKdaPrefill), "kda_prefill");
  EXPECT_EQ(name(Op::kPredict), "predict");
  EXPECT_FALSE(find_op("Predict").has_value());
}

TEST(Op, Contracts) {
  EXPECT_EQ(contract_of(Op::kKdaPrefill), Contract::kKdaPrefill);
  EXPECT_EQ(contract_of(Op::kChunkKda), Contract::kChunkKda);
  EXPECT_EQ(contract_of(Op::kRecurrentKda), Contract::kRecurrentKda);
  EXPECT_FALSE(contract_of(Op::kFit).has_value());
  EXPECT_FALSE(contract_of(Op::kPredict).has_value());
}

TEST(KdaCaseProblem, ViewsTheInputsAndKeepsTheOptions) {
  KdaCase kda_case = std::get<KdaCase>(small_case().inputs);
  kda_case.inputs.emplace("dt_bias", count_up(Dtype::kF32, {2}));
  kda_case.options.chunk_size = 32;
  const Problem problem = kda_case.problem();
  EXPECT_EQ(problem.q.data, kda_case.inputs.at("q").data());
  EXPECT_EQ(problem.v.shape, (Shape{1, 3, 1, 4}));
  EXPECT_EQ(problem.beta.data, kda_case.inputs.at("beta").data());
  EXPECT_EQ(problem.dt_bias->data, kda_case.inputs.at("dt_bias").data());
  EXPECT_FALSE(problem.A_log.has_value());
  EXPECT_FALSE(problem.initial_state.has_value());
  EXPECT_FALSE(problem.cu_seqlens.has_value());
  EXPECT_EQ(problem.chunk_size, 32);
  EXPECT_TRUE(problem.output_final_state);
}

}  // namespace
}  // namespace kda::harness::testing
