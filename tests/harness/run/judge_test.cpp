#include "harness/run/judge.hpp"

#include "harness/case/case_line.hpp"
#include "harness/run/oracle.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

Case small_case() {
  return make_case(parse_case_line(
      "op=chunk_kda T=70 H=1 HV=2 K=16 V=8 dtype=f32 initial_state=1 final_state=1 h=1 seed=3"));
}

Case refused_case() { return make_case(parse_case_line("op=chunk_kda T=4 K=8 V=8 chunk=16")); }

/// The reference's answer, changed by `change`.
template <class Change>
Implementation wrong(Change change) {
  return {.name = "wrong",
          .description = "",
          .ops = {Op::kChunkKda},
          .limit = {},
          .run = [change](const Case& test_case, const KernelSettings&) -> Answer {
            Answer answer = find_implementation("reference").run(test_case, {});
            change(std::get<Outputs>(answer));
            return answer;
          }};
}

template <class Raise>
Implementation raising(Raise raise) {
  return {.name = "raising",
          .description = "",
          .ops = {Op::kChunkKda},
          .limit = {},
          .run = [raise](const Case&, const KernelSettings&) -> Answer {
            raise();
            return Outputs{};
          }};
}

TEST(Judge, EveryBuiltInImplementationPasses) {
  for (const Implementation& implementation : all_implementations()) {
    if (unsupported(implementation, small_case())) continue;
    const CaseResult result = judge(small_case(), implementation, nullptr);
    EXPECT_EQ(result.verdict, Verdict::kPassed) << implementation.name << ": " << result.detail;
    EXPECT_NE(result.oracle, implementation.name);
  }
}

TEST(Judge, AWrongElementFailsInEveryTensor) {
  const auto spoil = [](Tensor& tensor) { tensor.as<double>()[tensor.size() / 2] += 1e-3; };
  EXPECT_EQ(judge(small_case(), wrong([&](Outputs& o) { spoil(o.o); }), nullptr).verdict,
            Verdict::kFailed);
  EXPECT_EQ(judge(small_case(), wrong([&](Outputs& o) { spoil(*o.final_state); }), nullptr).verdict,
            Verdict::kFailed);
  const CaseResult h = judge(small_case(), wrong([&](Outputs& o) { spoil(*o.h); }), nullptr);
  EXPECT_EQ(h.verdict, Verdict::kFailed);
  EXPECT_EQ(h.code, "over_bound");
  EXPECT_EQ(h.detail.substr(0, 2), "h:");
}

TEST(Judge, AMissingTensorFails) {
  const CaseResult result =
      judge(small_case(), wrong([](Outputs& o) { o.final_state.reset(); }), nullptr);
  EXPECT_EQ(result.verdict, Verdict::kFailed);
  EXPECT_EQ(result.code, "missing");
}

TEST(Judge, RefusingAnAcceptedCaseIsNoPass) {
  const auto refuse = [] { throw Error(ErrorCode::kBetaShape, "no"); };
  const CaseResult result = judge(small_case(), raising(refuse), nullptr);
  EXPECT_EQ(result.verdict, Verdict::kRefused);
  EXPECT_EQ(result.code, "beta_shape");
}

TEST(Judge, RefusalsAreJudgedByTheirCode) {
  EXPECT_EQ(judge(refused_case(), find_implementation("reference"), nullptr).verdict,
            Verdict::kPassed);
  const auto other = [] { throw Error(ErrorCode::kBetaShape, "no"); };
  const CaseResult wrong_code = judge(refused_case(), raising(other), nullptr);
  EXPECT_EQ(wrong_code.verdict, Verdict::kFailed);
  EXPECT_NE(wrong_code.detail.find("expected error chunk_size_unsupported"), std::string::npos);
  const CaseResult accepting = judge(refused_case(), raising([] {}), nullptr);
  EXPECT_EQ(accepting.verdict, Verdict::kFailed);
  EXPECT_EQ(accepting.code, "accepted");
}

TEST(Judge, FaultsOfTheProgramAreFailuresNotRefusals) {
  for (const ErrorCode code : {ErrorCode::kExecutorFault, ErrorCode::kCudaRuntime}) {
    EXPECT_EQ(judge(small_case(), raising([code] { throw Error(code, "race"); }), nullptr).verdict,
              Verdict::kFailed);
  }
  EXPECT_EQ(judge(small_case(), raising([] { throw std::bad_alloc(); }), nullptr).code,
            "out_of_memory");
  EXPECT_EQ(judge(small_case(), raising([] { throw std::logic_error("x"); }), nullptr).code,
            "exception");
}

TEST(Judge, OwnExpectedValuesProveNothing) {
  Case own = small_case();
  own.expected = expected_from(own, "reference");
  own.oracle = oracle_name("reference");
  EXPECT_EQ(judge(own, find_implementation("reference"), nullptr).verdict, Verdict::kUnsupported);
  EXPECT_EQ(judge(own, find_implementation("chunked"), nullptr).verdict, Verdict::kPassed);
}

TEST(Judge, OpsThatAreNotServedAreUnsupported) {
  Case fit;
  fit.op = Op::kFit;
  fit.inputs = FitCase{};
  EXPECT_EQ(judge(fit, find_implementation("fast"), nullptr).verdict, Verdict::kUnsupported);
}

TEST(Judge, ResultsFromElsewhereAreJudgedAlike) {
  const Case test_case = small_case();
  auto tensors = expected_from(test_case, "reference").tensors;
  EXPECT_EQ(judge_result(test_case, tensors, {}, "", {}).verdict, Verdict::kPassed);
  EXPECT_EQ(judge_result(test_case, {}, "beta_shape", "no", {}).verdict, Verdict::kRefused);
  EXPECT_EQ(judge_result(refused_case(), tensors, {}, "", {}).verdict, Verdict::kFailed);
  EXPECT_EQ(judge_result(refused_case(), {}, "chunk_size_unsupported", "", {}).verdict,
            Verdict::kPassed);
  tensors.erase("h");
  EXPECT_EQ(judge_result(test_case, tensors, {}, "", {}).code, "missing");
}

TEST(CaseAnswers, AreMadeOnce) {
  const Case test_case = small_case();
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  const Semantics semantics = check(kda_case.contract, kda_case.problem());
  CaseAnswers answers(test_case);
  EXPECT_EQ(&answers.expected("reference"), &answers.expected("reference"));
  EXPECT_NE(&answers.expected("reference"), &answers.expected("fast"));
  const auto f32 = formats_of(f32_formats(), kda_case.problem());
  const auto bf16 = formats_of(parse_formats("bf16"), kda_case.problem());
  EXPECT_EQ(&answers.deviations(semantics, f32), &answers.deviations(semantics, f32));
  EXPECT_NE(&answers.deviations(semantics, f32), &answers.deviations(semantics, bf16));
}

TEST(Judge, StatedFormatsMakeTheBound) {
  // A state kept in bf16: right for who says so.
  const auto keep_in_bf16 = [](Outputs& outputs) {
    Tensor state(Dtype::kBf16, outputs.final_state->shape());
    for (std::int64_t i = 0; i < state.size(); ++i)
      state.store(i, load(outputs.final_state->view(), i));
    outputs.final_state = std::move(state);
  };
  Implementation kernel = wrong(keep_in_bf16);
  EXPECT_EQ(judge(small_case(), kernel, &find_policy("derived")).verdict, Verdict::kFailed);
  kernel.formats = parse_formats("state=bf16");
  const CaseResult stated = judge(small_case(), kernel, &find_policy("derived"));
  EXPECT_EQ(stated.verdict, Verdict::kPassed) << stated.detail;
  EXPECT_NE(stated.comparison->formats.find("state=bf16"), std::string::npos);
  const Case test_case = small_case();
  CaseAnswers answers(test_case);
  Judging judging;
  judging.policy = &find_policy("derived");
  judging.formats = f32_formats();
  EXPECT_EQ(judge(answers, kernel, judging).verdict, Verdict::kFailed) << "--formats goes first";
}

TEST(Judge, ACaseThatSeesNothingIsMistrustedWhateverTheResult) {
  const Case zeros = make_case(parse_case_line("op=chunk_kda T=8 K=8 V=8 scale=0"));
  EXPECT_EQ(judge(zeros, find_implementation("peer-f32"), nullptr).verdict, Verdict::kMistrusted);
  const auto spoil = [](Outputs& outputs) { outputs.o.store(3, 1); };
  const CaseResult wrong_result = judge(zeros, wrong(spoil), nullptr);
  EXPECT_EQ(wrong_result.verdict, Verdict::kMistrusted);
  EXPECT_EQ(wrong_result.code, "vacuous");
}

TEST(TakeHead, EqualsTheHeadOfTheWhole) {
  const Case whole = make_case(parse_case_line(
      "op=chunk_kda lens=3,0,40 H=2 HV=4 K=8 V=4 dtype=f32 gate=softplus l2norm=1 beta_sigmoid=1 "
      "v_first=1 initial_state=1 final_state=1 h=1 seed=5"));
  const auto expected = expected_from(whole, "reference").tensors;
  for (std::int64_t hv = 0; hv < 4; ++hv) {
    Case head;
    head.op = whole.op;
    head.inputs = take_head(std::get<KdaCase>(whole.inputs), hv);
    const auto got = expected_from(head, "reference").tensors;
    const auto want = take_head(expected, hv);
    for (const char* tensor : {"o", "final_state", "h"}) {
      EXPECT_EQ(to_f64(got.at(tensor).view()), to_f64(want.at(tensor).view()))
          << tensor << " " << hv;
    }
  }
}

/// Large enough to be judged head by head (268 MB of chunk states in f64), small enough for a test.
Case large_case() {
  return make_case(parse_case_line("op=chunk_kda T=4096 H=1 HV=4 K=256 V=256 chunk=32 h=1 seed=1"));
}

TEST(JudgeByHead, FindsTheHead) {
  const Case test_case = large_case();
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  ASSERT_TRUE(judged_by_head(check(kda_case.contract, kda_case.problem())));
  EXPECT_EQ(judge(test_case, find_implementation("fast"), nullptr).verdict, Verdict::kPassed);

  Implementation faulty = find_implementation("fast");
  int heads = 0;
  faulty.run = [&heads](const Case& part, const KernelSettings&) -> Answer {
    Answer answer = find_implementation("fast").run(part, {});
    Tensor& o = std::get<Outputs>(answer).o;
    if (heads++ == 2) o.as<double>()[1000 * 256 + 7] += 1;
    return answer;
  };
  const CaseResult result = judge(test_case, faulty, nullptr);
  EXPECT_EQ(heads, 4);
  ASSERT_EQ(result.verdict, Verdict::kFailed);
  ASSERT_TRUE(result.comparison);
  const auto o = std::ranges::find(result.comparison->tensors, "o", &TensorReport::name);
  ASSERT_TRUE(o->worst);
  EXPECT_EQ(o->worst->place.hv, 2);
  EXPECT_EQ(o->worst->place.t, 1000);
  EXPECT_EQ(o->worst->place.v, 7);
  EXPECT_EQ(o->metrics.compared, 4096 * 4 * 256);
}

FitCase profile() {
  FitCase fit;
  for (std::int64_t l = 64; l <= 1280; l += 64) {
    fit.seq_lens.push_back(l);
    const auto x = static_cast<double>(l);
    fit.latencies.push_back(2e-7 * x * x + 0.02 * x + 15);
  }
  return fit;
}

FitAnswer right_answer() {
  return {.a = 2e-7,
          .b = 0.02,
          .c = 15,
          .target_latency = 10,
          .warning = {},
          .error = {},
          .raw_a = {},
          .raw_b = {},
          .raw_c = {}};
}

Expected right_fit() {
  Expected expected;
  expected.fit.a = 2e-7;
  expected.fit.b = 0.02;
  expected.fit.c = 15;
  expected.fit.target_latency = 10;
  return expected;
}

Verdict verdict_of(const FitAnswer& answer, const Expected& expected) {
  CaseResult result;
  judge_fit(profile(), expected, answer, result);
  return result.verdict;
}

TEST(JudgeFit, EveryNumberCounts) {
  EXPECT_EQ(verdict_of(right_answer(), right_fit()), Verdict::kPassed);
  for (auto number : {&FitAnswer::a, &FitAnswer::b, &FitAnswer::c, &FitAnswer::target_latency}) {
    FitAnswer answer = right_answer();
    answer.*number = *(answer.*number) * (1 + 1e-6);
    EXPECT_EQ(verdict_of(answer, right_fit()), Verdict::kFailed);
    answer.*number = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(verdict_of(answer, right_fit()), Verdict::kFailed);
    answer.*number = std::nullopt;
    EXPECT_EQ(verdict_of(answer, right_fit()), Verdict::kFailed);
  }
}

TEST(JudgeFit, ErrorsAndWarningsCount) {
  FitAnswer answer = right_answer();
  answer.error = "fit_failed";
  EXPECT_EQ(verdict_of(answer, right_fit()), Verdict::kFailed);
  answer = right_answer();
  answer.warning = "fit_b_negative";
  EXPECT_EQ(verdict_of(answer, right_fit()), Verdict::kFailed);
  Expected refused;
  refused.error = "fit_a_not_positive";
  EXPECT_EQ(verdict_of(right_answer(), refused), Verdict::kFailed);
  refused.fit.raw_a = -1.0;
  answer = FitAnswer{};
  answer.error = "fit_a_not_positive";
  EXPECT_EQ(verdict_of(answer, refused), Verdict::kFailed);
  answer.raw_a = -1.0;
  EXPECT_EQ(verdict_of(answer, refused), Verdict::kPassed);
}

TEST(JudgePredict, SizeAndReasonAreCompared) {
  const auto verdict = [](const PredictAnswer& want, const PredictAnswer& got) {
    CaseResult result;
    Expected expected;
    expected.predict = want;
    judge_predict(expected, got, result);
    return result.verdict;
  };
  EXPECT_EQ(verdict({.chunk_size = 64, .none = {}}, {.chunk_size = 64, .none = {}}),
            Verdict::kPassed);
  EXPECT_EQ(verdict({.chunk_size = 64, .none = {}}, {.chunk_size = 128, .none = {}}),
            Verdict::kFailed);
  EXPECT_EQ(
      verdict({.chunk_size = {}, .none = "no_target"}, {.chunk_size = {}, .none = "not_ready"}),
      Verdict::kFailed);
  EXPECT_EQ(verdict({.chunk_size = {}, .none = "no_target"}, {.chunk_size = 64, .none = {}}),
            Verdict::kFailed);
}

}  // namespace
}  // namespace kda::harness
