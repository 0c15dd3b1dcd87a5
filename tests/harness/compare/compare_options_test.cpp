#include "reference/activated.hpp"
#include "tests/harness/compare/compare_judged.hpp"

#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

// A value rounded to bf16 where f32 is stated must fail on f32-storage cases: the roundings that no
// bound for 16-bit operands can see.

namespace kda::harness {
namespace {

double bf16(double x) { return static_cast<double>(to_float(to_bf16(x))); }

void round_all(Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, bf16(get(tensor, i)));
}

/// Ready-made gates and betas in place of the fused ones, rounded on the way.
void activate(KdaCase& c, const Semantics& s, const std::function<double(double)>& gate,
              const std::function<double(double)>& beta) {
  const Problem problem = c.problem();
  const reference::ActivatedReader reader(problem, s);
  Tensor g(Dtype::kF32, c.inputs.at("g").shape());
  Tensor b(Dtype::kF32, c.inputs.at("beta").shape());
  reference::ActivatedRows rows;
  for (const Sequence& sequence : s.sequences) {
    for (std::int64_t hv = 0; hv < s.HV; ++hv) {
      reader.read(sequence, hv, 0, sequence.length(), rows);
      for (std::int64_t t = 0; t < sequence.length(); ++t) {
        const std::int64_t token = (sequence.b * s.T + sequence.begin + t) * s.HV + hv;
        b.store(token, beta(rows.beta[static_cast<std::size_t>(t)]));
        for (std::int64_t k = 0; k < s.K; ++k)
          g.store(token * s.K + k, gate(rows.log_decay[static_cast<std::size_t>(t * s.K + k)]));
      }
    }
  }
  c.inputs.at("g") = std::move(g);
  c.inputs.at("beta") = std::move(b);
  c.options.use_gate_in_kernel = c.options.use_beta_sigmoid_in_kernel = false;
  c.options.allow_neg_eigval = c.options.safe_gate = false;
}

struct Fault {
  const char* name;
  std::function<void(KdaCase&, const Semantics&)> apply;
};

double same(double x) { return x; }

std::vector<Fault> faults(const KdaCase& c) {
  std::vector<Fault> all{
      {"activated gate", [](KdaCase& x, const Semantics& s) { activate(x, s, bf16, same); }},
      {"decay",
       [](KdaCase& x, const Semantics& s) {
         activate(
             x, s, [](double g) { return std::log(bf16(std::exp(g))); }, same);
       }},
      {"activated beta", [](KdaCase& x, const Semantics& s) { activate(x, s, same, bf16); }},
  };
  for (const auto& [input, tensor] : c.inputs) {
    if (is_float(tensor.dtype()))
      all.push_back({input.c_str(), [input = input](KdaCase& x, const Semantics&) {
                       round_all(x.inputs.at(input));
                     }});
  }
  return all;
}

class Options : public testing::TestWithParam<const char*> {};

TEST_P(Options, ARoundingToBf16FailsInClassF32) {
  const Judged judged(std::string("op=chunk_kda T=70 H=1 HV=2 K=16 V=16 dtype=f32 final_state=1 ") +
                      GetParam());
  const auto answer = [&](const KdaCase& c) {
    const Problem problem = c.problem();
    return tensors_of(reference::recurrent_f32(problem, check(Contract::kRecurrentKda, problem)));
  };
  const auto report = [&](const Tensors& got) { return judged.report(got, "derived"); };
  EXPECT_TRUE(report(answer(judged.kda_case)).passed());
  EXPECT_FALSE(judged.doubt("derived"));
  for (const Fault& fault : faults(judged.kda_case)) {
    KdaCase wrong = judged.kda_case;
    fault.apply(wrong, judged.semantics);
    EXPECT_FALSE(report(answer(wrong)).passed()) << fault.name;
  }
  KdaCase ready = judged.kda_case;  // the detour by ready-made values is no fault itself
  activate(ready, judged.semantics, same, same);
  EXPECT_TRUE(report(answer(ready)).passed()) << to_text(report(answer(ready)));
  Tensors got = answer(judged.kda_case);
  round_all(got.at("final_state"));
  EXPECT_FALSE(report(got).passed()) << "final state";
}

INSTANTIATE_TEST_SUITE_P(
    Fused, Options,
    testing::Values("", "l2norm=1", "gate=softplus", "gate=bound safe_gate=1", "beta_sigmoid=1",
                    "beta_sigmoid=1 neg_eigval=1", "initial_state=1",
                    "l2norm=1 gate=bound beta_sigmoid=1 initial_state=1 v_first=1",
                    "l2norm=1 gate=softplus beta_sigmoid=1 neg_eigval=1 initial_state=1"));

}  // namespace
}  // namespace kda::harness
