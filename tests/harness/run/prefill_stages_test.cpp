#include "harness/implementation/prefill_stages.hpp"

#include "harness/case/case_line.hpp"
#include "harness/run/judge.hpp"
#include "reference/types/contract.hpp"

#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

/// Three chunks, the last ragged.
Case test_case() {
  return make_case(
      parse_case_line("op=kda_prefill T=140 H=2 l2norm=1 gate=softplus beta_sigmoid=1 "
                      "initial_state=1 h=1 v_first=1 seed=5"));
}

/// What is found after `spoil` has changed the stages of a right run.
std::string found(const std::function<void(cuda::PrefillTensors&, Outputs&)>& spoil) {
  const Case made = test_case();
  const Problem problem = std::get<KdaCase>(made.inputs).problem();
  cuda::PrefillTensors stages;
  Outputs outputs = cuda::run_prefill_cpu(problem, {}, {}, nullptr, &stages);
  spoil(stages, outputs);
  return first_wrong_stage(problem, check(Contract::kKdaPrefill, problem), stages, outputs)
      .value_or("nothing");
}

void expect_found(const std::string& name,
                  const std::function<void(cuda::PrefillTensors&, Outputs&)>& spoil) {
  const std::string text = found(spoil);
  EXPECT_EQ(text.find("first wrong stage: " + name), 0U) << text;
}

/// Element of a stage of chunk 1, head 1.
float& element(Tensor& stage, std::int64_t i, std::int64_t j) {
  const std::int64_t columns = stage.shape()[3];
  return stage.as<float>()[((1 * 2 + 1) * stage.shape()[2] + i) * columns + j];
}

TEST(PrefillStagesOfARun, NothingIsWrongWithARightOne) {
  EXPECT_EQ(found([](auto&, auto&) {}), "nothing");
}

TEST(PrefillStagesOfARun, EachIsNamed) {
  using Stages = cuda::PrefillTensors;
  const std::string where = " of sequence 0, value head 1, tokens 64 to 127: element (20, 7)";
  expect_found("the sum of log decays (token, channel)" + where,
               [](Stages& s, Outputs&) { element(s.log_decay, 20, 7) -= 0.5F; });
  expect_found("A (token, token)" + where,
               [](Stages& s, Outputs&) { element(s.A, 20, 7) += 0.1F; });
  expect_found("Q (token, token)" + where, [](Stages& s, Outputs&) { element(s.Q, 20, 7) = NAN; });
  expect_found("T (token, token)" + where,
               [](Stages& s, Outputs&) { element(s.T, 20, 7) += 0.1F; });
  expect_found("U (token, v)" + where, [](Stages& s, Outputs&) { element(s.U, 20, 7) += 4.F; });
  expect_found("the state before the chunk (k, v)" + where,
               [](Stages&, Outputs& o) { element(*o.h, 20, 7) += 4.F; });
}

TEST(PrefillStagesOfARun, TheFirstIsNamed) {
  expect_found("A (token, token) of sequence 0, value head 1, tokens 64",
               [](cuda::PrefillTensors& s, Outputs& o) {
                 element(s.U, 3, 3) = NAN;
                 element(s.A, 9, 3) = NAN;
                 o.h->as<float>()[5 * 128 * 128] = NAN;  // chunk 2
               });
}

TEST(PrefillStagesOfARun, AFailedCaseSaysWhatItsDiagnosisSays) {
  const Implementation wrong{
      .name = "wrong",
      .description = "",
      .ops = {Op::kKdaPrefill},
      .limit = {},
      .run = [](const Case& made, const KernelSettings&) -> Answer {
        Answer answer = find_implementation("reference").run(made, {});
        std::get<Outputs>(answer).o.as<double>()[77] += 1;
        return answer;
      },
      .diagnose =
          [](const Case& made) { return diagnose_prefill(made, cuda::PrefillPolicy::kMixed); }};
  const CaseResult result = judge(test_case(), wrong, nullptr);
  EXPECT_EQ(result.verdict, Verdict::kFailed);
  EXPECT_NE(result.detail.find("; stages: every one is as it should be"), std::string::npos)
      << result.detail;
}

}  // namespace
}  // namespace kda::harness
