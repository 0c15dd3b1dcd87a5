#include "harness/fuzz/shrink.hpp"

#include "harness/case/case_line.hpp"
#include "harness/fuzz/draw.hpp"
#include "harness/fuzz/slice.hpp"
#include "harness/run/oracle.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

KdaCase from_line(const char* line) {
  return std::get<KdaCase>(make_case(parse_case_line(line)).inputs);
}

std::map<std::string, Tensor> answer(const KdaCase& kda_case) {
  const Problem problem = kda_case.problem();
  return by_name(reference::recurrent(problem, check(kda_case.contract, problem)));
}

/// Rows [begin, begin + count) of the axis of `whole` are `part`, bit for bit.
void expect_slice(const Tensor& part, const Tensor& whole, std::size_t axis, std::int64_t begin) {
  Shape index(whole.shape().size(), 0);
  ASSERT_EQ(part.shape().size(), whole.shape().size());
  const Shape part_strides = dense_strides(part.shape());
  const Shape whole_strides = dense_strides(whole.shape());
  for (std::int64_t i = 0; i < part.size(); ++i) {
    std::int64_t at = 0;
    std::int64_t rest = i;
    for (std::size_t d = 0; d < index.size(); ++d) {
      at += (rest / part_strides[d] + (d == axis ? begin : 0)) * whole_strides[d];
      rest %= part_strides[d];
    }
    ASSERT_EQ(part.as<double>()[i], whole.as<double>()[at]) << i;
  }
}

constexpr const char* kPacked =
    "op=chunk_kda lens=5,7,4 H=2 HV=4 K=8 V=6 gate=softplus initial_state=1 final_state=1 "
    "v_first=1 beta_sigmoid=1 l2norm=1 seed=3";

TEST(Slice, ASequenceAloneGivesItsPartOfTheAnswer) {
  const KdaCase whole = from_line(kPacked);
  const KdaCase part = keep_sequences(whole, 1, 2);
  expect_slice(answer(part).at("o"), answer(whole).at("o"), 1, 5);
  expect_slice(answer(part).at("final_state"), answer(whole).at("final_state"), 0, 1);
}

TEST(Slice, BatchRowsAreSequences) {
  const KdaCase whole = from_line("op=recurrent_kda B=3 T=4 H=1 K=4 V=4 initial_state=1 seed=3");
  expect_slice(answer(keep_sequences(whole, 2, 1)).at("o"), answer(whole).at("o"), 0, 2);
}

TEST(Slice, AHeadAloneGivesItsPartOfTheAnswer) {
  const KdaCase whole = from_line(kPacked);
  const KdaCase part = keep_heads(whole, 1, 1);
  expect_slice(answer(part).at("o"), answer(whole).at("o"), 2, 2);
  expect_slice(answer(part).at("final_state"), answer(whole).at("final_state"), 1, 2);
}

TEST(Slice, APrefixOfTokensGivesAPrefixOfTheAnswer) {
  const KdaCase whole = from_line("op=recurrent_kda T=9 H=1 K=4 V=4 initial_state=1 seed=3");
  expect_slice(answer(*keep_tokens(whole, 0, 4)).at("o"), answer(whole).at("o"), 1, 0);
  EXPECT_FALSE(keep_tokens(whole, 9, 1));
  const KdaCase packed = from_line(kPacked);
  const KdaCase part = *keep_tokens(packed, 0, 3);
  EXPECT_EQ(check(part.contract, part.problem()).sequences[2].begin, 6);
  EXPECT_FALSE(keep_tokens(packed, 4, 1)) << "the last sequence has no fifth token";
}

TEST(Slice, ValueColumnsAreIndependent) {
  const KdaCase whole = from_line(kPacked);
  const KdaCase part = keep_channels(whole, 0, 8, 2, 3);
  expect_slice(answer(part).at("o"), answer(whole).at("o"), 3, 2);
  expect_slice(answer(part).at("final_state"), answer(whole).at("final_state"), 2, 2);
}

/// Right but for one element at one token, head and sequence, as long as they are there: beyond
/// token 137 the head that holds `marked` in v gives a wrong column.
Outputs wrong_late(const KdaCase& kda_case, double marked) {
  const Problem problem = kda_case.problem();
  const Semantics s = check(kda_case.contract, problem);
  Outputs out = reference::recurrent_f32(problem, s);
  for (const Sequence& sequence : s.sequences) {
    for (std::int64_t hv = 0; hv < s.HV; ++hv) {
      for (std::int64_t t = sequence.begin; t < sequence.end; ++t) {
        const std::int64_t row = ((sequence.b * s.T + t) * s.HV + hv) * s.V;
        if (load(problem.v, row) == marked) out.o.store(row, 100.0);
      }
    }
  }
  return out;
}

TEST(Shrink, AFaultInOneOfManySequencesHeadsAndTokensIsCutOut) {
  KdaCase kda_case = from_line(
      "op=recurrent_kda B=4 T=300 H=8 K=16 V=16 dtype=f32 gate=softplus l2norm=1 "
      "initial_state=1 final_state=1 seed=5");
  constexpr double kMarked = 77;
  kda_case.inputs.at("v").store(((2LL * 300 + 137) * 8 + 5) * 16, kMarked);
  const Implementation faulty{
      .name = "faulty",
      .description = "",
      .ops = {Op::kRecurrentKda},
      .limit = {},
      .run = [](const Case& test_case, const KernelSettings&) -> Answer {
        return wrong_late(std::get<KdaCase>(test_case.inputs), kMarked);
      },
  };
  const Shrunk shrunk =
      shrink(kda_case, judged_by(faulty, {}), {.judgements = 300, .seconds = 100});
  const Semantics s = check(shrunk.smallest.contract, shrunk.smallest.problem());
  EXPECT_EQ(s.N(), 1);
  EXPECT_EQ(s.H, 1);
  EXPECT_LT(s.T, 20);
  EXPECT_EQ(shrunk.votes, shrunk.of_votes);
  EXPECT_EQ(shrunk.smallest.inputs.count("initial_state"), 0U) << describe(shrunk.smallest);
  EXPECT_FALSE(shrunk.smallest.options.use_gate_in_kernel) << describe(shrunk.smallest);
}

TEST(Slice, AValueHeadAloneGivesItsPartOfTheAnswer) {
  const KdaCase whole = from_line(kPacked);
  const KdaCase part = keep_heads(keep_value_heads(whole, 1, 1), 1, 1);
  EXPECT_EQ(part.inputs.at("v").shape()[2], 1);
  expect_slice(answer(part).at("o"), answer(whole).at("o"), 2, 3);
  expect_slice(answer(part).at("final_state"), answer(whole).at("final_state"), 1, 3);
}

TEST(Shrink, ValueHeadsAreCutToOneForEachHead) {
  const KdaCase kda_case = from_line("op=recurrent_kda T=5 H=1 HV=4 K=4 V=4 seed=5");
  const Shrunk shrunk = shrink(kda_case, [](const KdaCase&) { return Verdict::kFailed; });
  EXPECT_EQ(shrunk.smallest.inputs.at("v").shape()[2], 1) << describe(shrunk.smallest);
}

TEST(Shrink, NoCallBeginsAfterTheTimeButALastOne) {
  const KdaCase kda_case = from_line("op=recurrent_kda T=40 H=4 K=4 V=4 seed=5");
  int calls = 0;
  const VerdictOn slow = [&calls](const KdaCase&) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return Verdict::kFailed;
  };
  const Shrunk shrunk = shrink(kda_case, slow, {.judgements = 1000, .seconds = 0.1});
  EXPECT_LE(calls, 3) << "one in the time, one that outlasts it, the last";
  EXPECT_TRUE(shrunk.exhausted);
  EXPECT_EQ(shrunk.votes, 1);
  EXPECT_EQ(shrunk.of_votes, 1);
}

TEST(Shrink, AFlakyFailureIsCutByMajority) {
  const KdaCase kda_case = from_line("op=recurrent_kda T=40 H=4 K=4 V=4 seed=5");
  int calls = 0;
  const VerdictOn flaky = [&calls](const KdaCase& candidate) {
    const bool large = candidate.inputs.at("q").shape()[1] > 10;
    return large && ++calls % 4 != 0 ? Verdict::kFailed : Verdict::kPassed;  // 3 of 4 times
  };
  const Shrunk shrunk = shrink(kda_case, flaky);
  EXPECT_EQ(shrunk.smallest.inputs.at("q").shape()[1], 11);
  EXPECT_LT(shrunk.votes, shrunk.of_votes);
}

TEST(Shrink, AnotherVerdictIsAnotherFault) {
  const KdaCase kda_case = from_line("op=recurrent_kda T=40 H=4 K=4 V=4 seed=5");
  const VerdictOn crash_when_small = [](const KdaCase& candidate) {
    return candidate.inputs.at("q").shape()[1] < 20 ? Verdict::kCrashed : Verdict::kFailed;
  };
  EXPECT_EQ(shrink(kda_case, crash_when_small).smallest.inputs.at("q").shape()[1], 20);
}

TEST(Shrink, WhatDoesNotFailIsRefused) {
  const KdaCase kda_case = from_line("op=recurrent_kda T=4 H=1 K=4 V=4 seed=5");
  try {
    (void)shrink(kda_case, [](const KdaCase&) { return Verdict::kPassed; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
  }
}

TEST(Draw, EveryLineIsAcceptedAndPairsAreCovered) {
  const std::vector<Op> ops{Op::kKdaPrefill, Op::kChunkKda, Op::kRecurrentKda};
  CaseDraw draw(ops, 11);
  std::set<std::string> lines;
  int drawn = 0;
  for (; !draw.all_pairs() && drawn < 400; ++drawn) {
    const CaseLine line = draw.next();
    lines.insert(to_string(line));
    CaseLine small = line;  // the contract reads shapes, so tokens may be few
    small.T = std::min<std::int64_t>(line.T, 3);
    if (small.lens) {
      for (std::int64_t& length : *small.lens) length = std::min<std::int64_t>(length, 1);
    }
    const KdaCase kda_case = std::get<KdaCase>(make_case(small).inputs);
    EXPECT_NO_THROW((void)check(kda_case.contract, kda_case.problem())) << to_string(line);
  }
  EXPECT_TRUE(draw.all_pairs()) << drawn;
  EXPECT_GT(draw.pairs(), 1000U);
  EXPECT_GT(lines.size(), 40U);

  CaseDraw again(ops, 11);
  CaseDraw other(ops, 12);
  EXPECT_TRUE(lines.contains(to_string(again.next())));
  EXPECT_FALSE(lines.contains(to_string(other.next())));
}

}  // namespace
}  // namespace kda::harness
