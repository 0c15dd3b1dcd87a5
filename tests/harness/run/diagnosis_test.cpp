#include "harness/run/diagnosis.hpp"

#include "tests/harness/compare/compare_judged.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

// Every fault is planted, and must be the first suspect.

namespace kda::harness {
namespace {

Diagnosis diagnosed(const Judged& judged, const Tensors& got) {
  const Standard standard = judged.standard("derived");
  const CompareReport report = compare(judged.semantics, standard, got);
  EXPECT_FALSE(report.passed()) << "the fault must be alive";
  const TensorReport* worst = report.worst();
  const FailedResult failed{judged.kda_case, judged.semantics, standard, got};
  return diagnose(failed, worst->worst ? std::optional(worst->worst->place) : std::nullopt);
}

std::string first_suspect(const Diagnosis& diagnosis) {
  return diagnosis.suspects.empty() ? "none" : diagnosis.suspects.front().fault;
}

/// new[i] = old[source(i)].
void permute(Tensor& tensor, const std::function<std::int64_t(std::int64_t)>& source) {
  const Tensor old = tensor;
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, get(old, source(i)));
}

TEST(Diagnosis, CopiesThatWereStoredWrong) {
  const auto suspect = [](const char* tensor, const std::function<void(Tensor&)>& spoil) {
    Tensors got = ordinary().rounded();
    spoil(got.at(tensor));
    return first_suspect(diagnosed(ordinary(), got));
  };
  const auto times = [](double factor) {
    return [factor](Tensor& x) {
      for (std::int64_t i = 0; i < x.size(); ++i) x.store(i, factor * get(x, i));
    };
  };
  EXPECT_EQ(suspect("o", times(0)), "o is all zeros");
  EXPECT_EQ(suspect("o", times(-1)), "o is -1 times the right one: the sign is lost");
  EXPECT_NE(suspect("o", times(std::sqrt(32.0))).find("the scale is left out"), std::string::npos);
  EXPECT_NE(suspect("final_state", times(0.5)).find("final_state is 0.5 times the right one"),
            std::string::npos);
  EXPECT_EQ(suspect("final_state",
                    [](Tensor& x) {
                      permute(x, [](std::int64_t i) {
                        return i / 1024 * 1024 + i % 32 * 32 + i % 1024 / 32;
                      });
                    }),
            "final_state is transposed: key and value axes are exchanged");
  EXPECT_EQ(
      suspect("o",
              [](Tensor& x) { permute(x, [](std::int64_t i) { return i < 128 ? i : i - 128; }); }),
      "o is one token late: each has the output of the token before");
  EXPECT_EQ(
      suspect("o",
              [](Tensor& x) {
                permute(x, [&](std::int64_t i) { return std::min(i + 128, i % 128 + 128 * 129); });
              }),
      "o is one token early: each has the output of the token after");
  EXPECT_EQ(suspect("o",
                    [](Tensor& x) {
                      permute(x, [](std::int64_t i) { return i / 32 * 32 + 31 - i % 32; });
                    }),
            "o is stored with its value columns reversed");
  EXPECT_EQ(suspect("o",
                    [](Tensor& x) {
                      permute(x, [](std::int64_t i) {
                        const std::int64_t head = i / 32 % 4;
                        return head == 1 ? i + 32 : head == 2 ? i - 32 : i;
                      });
                    }),
            "o: heads are mixed up: 1 has the values of 2, 2 has the values of 1");
}

/// The suspect when a kernel computes the case `spoil` makes of the right one.
std::string suspect_of(const std::string& line, const std::function<void(KdaCase&)>& spoil) {
  const Judged judged(line);
  KdaCase wrong = judged.kda_case;
  spoil(wrong);
  const Problem problem = wrong.problem();
  Outputs outputs = reference::recurrent_f32(problem, check(wrong.contract, problem));
  Tensors got = tensors_of(outputs);
  for (const auto& [name, tensor] : judged.expected)
    if (got.contains(name) && got.at(name).shape() != tensor.shape()) got.at(name) = tensor;
  return first_suspect(diagnosed(judged, got));
}

constexpr const char* kFused =
    "op=chunk_kda lens=40,90 H=2 HV=4 K=16 V=16 dtype=f32 l2norm=1 gate=bound beta_sigmoid=1 "
    "initial_state=1 final_state=1 seed=2";

TEST(Diagnosis, StepsThatWereLeftOut) {
  EXPECT_EQ(suspect_of(kFused, [](KdaCase& c) { c.options.use_qk_l2norm_in_kernel = false; }),
            "use_qk_l2norm_in_kernel is ignored");
  EXPECT_EQ(suspect_of(kFused, [](KdaCase& c) { c.options.use_beta_sigmoid_in_kernel = false; }),
            "the sigmoid of beta is missing");
  EXPECT_EQ(suspect_of(kFused, [](KdaCase& c) { c.inputs.erase("dt_bias"); }),
            "dt_bias is ignored");
  EXPECT_EQ(suspect_of(kFused, [](KdaCase& c) { c.inputs.erase("A_log"); }), "A_log is ignored");
  EXPECT_EQ(suspect_of(kFused, [](KdaCase& c) { c.options.use_gate_in_kernel = false; }),
            "the raw gate is taken for the log decay");
  EXPECT_EQ(suspect_of(kFused, [](KdaCase& c) { c.options.lower_bound.reset(); }),
            "the gate has its softplus form though there is a lower_bound");
  const std::string doubled = std::string(kFused) + " neg_eigval=1";
  EXPECT_EQ(suspect_of(doubled, [](KdaCase& c) { c.options.allow_neg_eigval = false; }),
            "the factor 2 of allow_neg_eigval is missing");
}

TEST(Diagnosis, StatesThatWentWrong) {
  EXPECT_EQ(suspect_of(kFused, [](KdaCase& c) { c.inputs.erase("initial_state"); }),
            "the initial state is ignored");
  EXPECT_EQ(suspect_of(kFused,
                       [](KdaCase& c) {
                         permute(c.inputs.at("initial_state"), [](std::int64_t i) {
                           return i / 256 * 256 + i % 16 * 16 + i % 256 / 16;
                         });
                       }),
            "the initial state is read transposed");
  EXPECT_EQ(suspect_of(kFused,
                       [](KdaCase& c) {
                         permute(c.inputs.at("initial_state"),
                                 [](std::int64_t i) { return (i + 4 * 256) % (8 * 256); });
                       }),
            "each sequence starts from the state of another one: a stale or misplaced state");
  EXPECT_EQ(suspect_of("op=chunk_kda lens=40,90 K=16 V=16 dtype=f32 family=slow_gate seed=2",
                       [](KdaCase& c) { c.inputs.at("cu_seqlens").as<std::int64_t>()[1] = 0; }),
            "sequences leak: the state is not reset between them");
  EXPECT_EQ(suspect_of("op=chunk_kda T=130 K=16 V=16 dtype=f32 family=slow_gate seed=2",
                       [](KdaCase& c) {
                         Tensor bounds(Dtype::kI64, {4});
                         for (std::int64_t i = 0; i < 4; ++i)
                           bounds.as<std::int64_t>()[i] = std::min<std::int64_t>(64 * i, 130);
                         c.inputs.emplace("cu_seqlens", bounds);
                       }),
            "the state is not handed on from chunk to chunk");
}

TEST(Diagnosis, DecaysInAnotherBase) {
  EXPECT_EQ(suspect_of("op=chunk_kda T=40 K=16 V=16 dtype=f32 seed=2",
                       [](KdaCase& c) {
                         Tensor& g = c.inputs.at("g");
                         for (std::int64_t i = 0; i < g.size(); ++i)
                           g.store(i, 0.6931471805599453 * get(g, i));
                       }),
            "decays are taken to base 2");
}

bool has_line(const Diagnosis& diagnosis, const std::string& part) {
  return std::ranges::any_of(diagnosis.pattern, [&](const std::string& line) {
    return line.find(part) != std::string::npos;
  });
}

/// Adds 1 to the elements of `o` that `where` picks by token and head.
Diagnosis spoilt_tokens(const std::function<bool(std::int64_t, std::int64_t)>& where) {
  Tensors got = ordinary().rounded();
  Tensor& o = got.at("o");
  for (std::int64_t i = 0; i < o.size(); ++i)
    if (where(i / 128, i / 32 % 4)) o.store(i, get(o, i) + 1);
  return diagnosed(ordinary(), got);
}

TEST(Diagnosis, PatternsOfTokensAndHeads) {
  const Diagnosis head = spoilt_tokens([](std::int64_t, std::int64_t hv) { return hv == 2; });
  EXPECT_TRUE(has_line(head, "1 of 4 heads (2)")) << to_text(head);
  EXPECT_TRUE(has_line(head, "first wrong (n=0, t=0, hv=2, v=0), token 0 of chunk 0"));
  const Diagnosis tail = spoilt_tokens([](std::int64_t t, std::int64_t) { return t >= 128; });
  EXPECT_TRUE(has_line(tail, "a fault of the tail")) << to_text(tail);
  const Diagnosis starts = spoilt_tokens([](std::int64_t t, std::int64_t) { return t % 64 == 0; });
  EXPECT_TRUE(has_line(starts, "a fault at chunk bounds")) << to_text(starts);
  const Diagnosis later = spoilt_tokens([](std::int64_t t, std::int64_t) { return t >= 64; });
  EXPECT_TRUE(has_line(later, "what a chunk hands on")) << to_text(later);
  const Diagnosis every = spoilt_tokens([](std::int64_t t, std::int64_t) { return t % 4 == 1; });
  EXPECT_TRUE(has_line(every, "every 4th from 1")) << to_text(every);
}

TEST(Diagnosis, PlotsTheErrorByToken) {
  const Diagnosis later = spoilt_tokens([](std::int64_t t, std::int64_t) { return t >= 64; });
  // 130 tokens, 3 a column: 44 columns, of which the first 21 hold right tokens only.
  EXPECT_NE(later.plot.find("by token (3 a column)"), std::string::npos) << later.plot;
  const std::size_t bars = later.plot.rfind('|');  // those over the limit
  EXPECT_EQ(later.plot.substr(bars + 1, 44), std::string(21, ' ') + std::string(23, '#'))
      << later.plot;
}

TEST(Diagnosis, NamesWhatTheBoundIsMadeOf) {
  const Diagnosis later = spoilt_tokens([](std::int64_t t, std::int64_t) { return t == 70; });
  ASSERT_FALSE(later.terms.empty());
  EXPECT_LE(later.terms.size(), 4U);
  double sum = 0;
  for (const BoundTerm& term : later.terms) sum += term.share;
  EXPECT_GT(sum, 0.95);
  EXPECT_LE(sum, 1.0001);
  EXPECT_TRUE(later.terms.front().source == "operands" || later.terms.front().source == "output")
      << later.terms.front().source;
}

TEST(Diagnosis, LeavesOutWhatHasTheWrongShape) {
  Tensors got = ordinary().rounded();
  got.at("final_state") = Tensor(Dtype::kF32, {1});
  got.erase("h");
  const Diagnosis diagnosis = diagnosed(ordinary(), got);
  EXPECT_TRUE(diagnosis.pattern.empty()) << to_text(diagnosis);
}

}  // namespace
}  // namespace kda::harness
