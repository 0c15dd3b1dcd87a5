#include "harness/plan/cost_model.hpp"

#include "cuda/prefill_plan.hpp"
#include "harness/plan/plan_text.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

/// A call of N sequences of T tokens: shapes only.
struct Call {
  Problem problem;
  Semantics semantics;

  Call(std::int64_t N, std::int64_t T, std::int64_t H) {
    const auto view = [](Shape shape) {
      const Shape strides = dense_strides(shape);
      return TensorView{nullptr, Dtype::kBf16, std::move(shape), strides};
    };
    problem.q = problem.k = problem.v = problem.g = view({N, T, H, 128});
    problem.beta = view({N, T, H});
    semantics = check(Contract::kKdaPrefill, problem);
  }
};

const DeviceModel& device(std::string_view name) {
  return *std::ranges::find(device_models(), name, &DeviceModel::name);
}

PrefillTime time_of(const Call& call, OperandPolicy policy, std::string_view gpu = "H200") {
  return prefill_time(prefill_work(call.semantics, call.problem, policy), device(gpu));
}

void expect_ms(double seconds, double ms) { EXPECT_NEAR(seconds * 1e3, ms, 0.006 * (1 + ms)); }

/// T = 8192, one sequence; figures by hand.
TEST(CostModel, FiguresOfTheDefault) {
  const Call h64(1, 8192, 64);
  const PrefillWork work = prefill_work(h64.semantics, h64.problem, OperandPolicy::kMixed);
  EXPECT_EQ(work.chunks, 8192);
  EXPECT_EQ(work.serial_steps, 128);
  EXPECT_EQ(work.factor_matrix, 344);
  EXPECT_EQ(work.chain_matrix, 440);
  EXPECT_EQ(work.chain_fragments, 336);
  EXPECT_DOUBLE_EQ(work.workspace, 87808.0 * 8192);

  const PrefillTime mixed = time_of(h64, OperandPolicy::kMixed);
  EXPECT_EQ(mixed.chain_blocks, 128);
  expect_ms(mixed.factor_hbm, .261);
  expect_ms(mixed.factor_issue, .212);
  expect_ms(mixed.chain_matrix, .225);
  expect_ms(mixed.chain_shared, .196);
  expect_ms(mixed.chain_l2, .286);
  expect_ms(mixed.chain_hbm, .230);
  expect_ms(mixed.ideal, .547);
  expect_ms(mixed.expected, .755);
  expect_ms(mixed.floor, .156);  // .158 with an initial and a final state
}

TEST(CostModel, FiguresOfOtherPolicies) {
  const Call h64(1, 8192, 64);
  const PrefillTime single = time_of(h64, OperandPolicy::kSingle);
  const PrefillTime split = time_of(h64, OperandPolicy::kSplit);
  expect_ms(single.factor_hbm, .220);
  expect_ms(split.factor_hbm, .324);
  expect_ms(single.chain_matrix, .129);
  expect_ms(split.chain_matrix, .355);
  expect_ms(single.chain_l2, .222);
  expect_ms(split.chain_l2, .384);
  expect_ms(single.ideal, .44);
  expect_ms(split.ideal, .71);
  EXPECT_DOUBLE_EQ(prefill_work(h64.semantics, h64.problem, OperandPolicy::kSplit).workspace / 8192,
                   120576);
}

TEST(CostModel, FiguresOfOtherShapes) {
  const PrefillTime h96 = time_of(Call(1, 8192, 96), OperandPolicy::kMixed);
  EXPECT_EQ(h96.chain_columns, 64);
  expect_ms(h96.factor_hbm, .392);
  expect_ms(h96.factor_issue, .318);
  expect_ms(h96.chain_matrix, .449);
  expect_ms(h96.chain_l2, .429);
  expect_ms(h96.chain_hbm, .344);
  expect_ms(h96.ideal, .841);

  const PrefillTime h16 = time_of(Call(1, 8192, 16), OperandPolicy::kMixed);
  EXPECT_EQ(h16.chain_columns, 32);
  expect_ms(h16.factor_hbm, .065);
  expect_ms(h16.factor_issue, .053);
  expect_ms(h16.chain_matrix, .225);
  expect_ms(h16.ideal, .290);

  expect_ms(time_of(Call(8, 1024, 64), OperandPolicy::kMixed).ideal, .547);

  const PrefillTime a100 = time_of(Call(1, 8192, 64), OperandPolicy::kMixed, "A100");
  expect_ms(a100.factor_hbm, .642);
  expect_ms(a100.factor_issue, .323);
  expect_ms(a100.chain_matrix, .679);
  expect_ms(a100.chain_shared, .488);
  expect_ms(a100.chain_l2, .449);
  expect_ms(a100.chain_hbm, .564);
  expect_ms(a100.ideal, 1.321);
}

/// The model is of the kernels that there are.
TEST(CostModel, BlocksAndWorkspaceAreThoseOfThePlan) {
  for (const auto& [N, T, H] :
       {std::array<std::int64_t, 3>{1, 8192, 64}, {1, 8192, 96}, {1, 512, 16}, {8, 100, 4}}) {
    const Call call(N, T, H);
    for (const DeviceModel& gpu : device_models()) {
      const cuda::PrefillPlan plan =
          cuda::plan_prefill({.HV = H, .sequences = call.semantics.sequences},
                             {.multiprocessors = static_cast<int>(gpu.sms)});
      EXPECT_EQ(plan.v_columns, time_of(call, OperandPolicy::kMixed, gpu.name).chain_columns)
          << gpu.name << " " << H;
    }
    const auto blob = [&](OperandPolicy policy) {
      const PrefillWork work = prefill_work(call.semantics, call.problem, policy);
      return work.workspace / static_cast<double>(work.chunks);
    };
    using cuda::PrefillPolicy;
    EXPECT_EQ(blob(OperandPolicy::kMixed), cuda::prefill_blob_bytes(PrefillPolicy::kMixed));
    EXPECT_EQ(blob(OperandPolicy::kSplit), cuda::prefill_blob_bytes(PrefillPolicy::kSplit));
    EXPECT_EQ(blob(OperandPolicy::kSingle), cuda::prefill_blob_bytes(PrefillPolicy::kBf16));
  }
}

TEST(CostModel, BytesFollowTheOptions) {
  Call call(2, 100, 4);
  const double plain =
      prefill_work(call.semantics, call.problem, OperandPolicy::kMixed).minimum_bytes;
  EXPECT_DOUBLE_EQ(plain, 2 * 100 * 4 * (5 * 256.0 + 2));
  call.problem.output_final_state = true;
  call.problem.return_intermediate_states = true;
  call.problem.g.dtype = Dtype::kF32;
  call.semantics = check(Contract::kKdaPrefill, call.problem);
  const double more =
      prefill_work(call.semantics, call.problem, OperandPolicy::kMixed).minimum_bytes;
  EXPECT_DOUBLE_EQ(more - plain, 2 * 100 * 4 * 256.0 + (2 + 4) * 4 * 65536.0);
}

TEST(PlanText, NamesWhatAUserAsksFor) {
  const std::string prefill = plan_text(parse_case_line("op=kda_prefill T=8192 H=64"));
  for (const char* part : {"8192 chunks x heads, 128 serial steps", "H200", "719.3", "B200"}) {
    EXPECT_NE(prefill.find(part), std::string::npos) << part << "\n" << prefill;
  }
  const std::string recurrent =
      plan_text(parse_case_line("op=recurrent_kda B=32 T=1 H=64 initial_state=1 final_state=1"));
  EXPECT_NE(recurrent.find("blocks 8192"), std::string::npos) << recurrent;
  EXPECT_THROW(static_cast<void>(plan_text(parse_case_line("op=kda_prefill K=64"))), Error);
}

}  // namespace
}  // namespace kda::harness
