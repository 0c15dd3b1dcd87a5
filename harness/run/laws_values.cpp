#include "harness/run/case_edit.hpp"
#include "harness/run/laws.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Both outputs of a call put together from parts.
Outputs blank(const LawRun& run) {
  Outputs out;
  out.o = Tensor(run.base().o.dtype(), run.base().o.shape());
  const Tensor& state = run.base().final_state.value();
  out.final_state = Tensor(state.dtype(), state.shape());
  return out;
}

/// Runs the parts as one call and puts its answer into `out`; false when it is not served.
bool run_parts(const LawRun& run, const std::vector<Part>& parts, bool packed, const Tensor* states,
               Outputs& out) {
  const auto got = run.answer(case_of_parts(run.plain(), parts, packed, states));
  if (!got) return false;
  put_parts(out.o, parts, got->o);
  if (got->final_state) put_states(*out.final_state, parts, *got->final_state);
  return true;
}

LawResult split(const LawRun& run) {
  std::vector<Part> first = parts_of(run.semantics());
  std::vector<Part> second = first;
  for (std::size_t n = 0; n < first.size(); ++n) {
    const std::int64_t at = first[n].end - (first[n].end - first[n].begin) / 3;
    first[n].end = second[n].begin = at;
  }
  const bool packed = first.size() > 1 || run.call().inputs.contains("cu_seqlens");
  Outputs out = blank(run);
  if (!run_parts(run, first, packed, run.states(), out)) {
    return not_applicable("split", "the first part is not served");
  }
  const Tensor handed_over = *out.final_state;
  if (handed_over.dtype() != Dtype::kF32 || !run_parts(run, second, packed, &handed_over, out)) {
    return not_applicable("split", "the second part is not served");
  }
  return law_result("split", run.difference(out));
}

LawResult separate(const LawRun& run) {
  const std::vector<Part> parts = parts_of(run.semantics());
  if (parts.size() < 2) return not_applicable("separate", "one sequence");
  Outputs out = blank(run);
  for (const Part& part : parts) {
    const bool empty = part.begin == part.end;
    if (!run_parts(run, {part}, empty, run.states(), out)) {
      return not_applicable("separate", "a sequence alone is not served");
    }
  }
  return law_result("separate", run.difference(out));
}

LawResult sequences_permuted(const LawRun& run) {
  std::vector<Part> parts = parts_of(run.semantics());
  if (parts.size() < 2) return not_applicable("sequences_permuted", "one sequence");
  std::ranges::reverse(parts);
  Outputs out = blank(run);
  if (!run_parts(run, parts, true, run.states(), out)) {
    return not_applicable("sequences_permuted", "the packed call is not served");
  }
  return law_result("sequences_permuted", run.difference(out));
}

LawResult heads_permuted(const LawRun& run) {
  const Semantics& s = run.semantics();
  if (s.H < 2) return not_applicable("heads_permuted", "one query head");
  const std::int64_t group = s.HV / s.H;
  Case rolled_case = run.plain();
  for (auto& [name, x] : std::get<KdaCase>(rolled_case.inputs).inputs) {
    if (name == "q" || name == "k") {
      x = rolled(x, 2, 1);
    } else if (name == "v" || name == "g" || name == "beta") {
      x = rolled(x, 2, group);
    } else if (name == "initial_state") {
      x = rolled(x, 1, group);
    } else if (name != "cu_seqlens" && x.size() % s.HV == 0) {  // A_log, dt_bias of any shape
      Tensor flat(x.dtype(), {x.size()});
      std::copy_n(x.data(), x.bytes(), flat.data());
      flat = rolled(flat, 0, group * (x.size() / s.HV));
      std::copy_n(flat.data(), x.bytes(), x.data());
    }
  }
  auto got = run.answer(rolled_case);
  if (!got) return not_applicable("heads_permuted", "the permuted call is not served");
  got->o = rolled(got->o, 2, s.HV - group);
  if (got->final_state) got->final_state = rolled(*got->final_state, 1, s.HV - group);
  return law_result("heads_permuted", run.difference(*got));
}

bool takes_values_as_given(const Semantics& s) {
  return s.gate == GateForm::kLogDecay && s.beta == BetaForm::kReady;
}

void fill(Tensor& x, double value) {
  for (std::int64_t i = 0; i < x.size(); ++i) x.store(i, value);
}

LawResult untouched(const LawRun& run) {
  if (!takes_values_as_given(run.semantics()) || run.states() == nullptr) {
    return not_applicable("untouched", "no state, or gates and beta are computed");
  }
  Case still = run.plain();
  auto& inputs = std::get<KdaCase>(still.inputs).inputs;
  fill(inputs.at("g"), 0);
  fill(inputs.at("beta"), 0);
  const auto got = run.answer(still);
  if (!got || !got->final_state) return not_applicable("untouched", "not served");
  const Tensor& before = inputs.at("initial_state");
  for (std::int64_t i = 0; i < before.size(); ++i) {
    const double now = load(got->final_state->view(), i);
    if (now == load(before.view(), i)) continue;
    return law_result("untouched", fmt::format("state element {} became {}", i, now));
  }
  return law_result("untouched", "");
}

LawResult padding(const LawRun& run) {
  const Semantics& s = run.semantics();
  if (!takes_values_as_given(s) || run.call().inputs.contains("cu_seqlens")) {
    return not_applicable("padding", "packed, or gates and beta are computed");
  }
  constexpr std::int64_t kRows = 3;
  Case padded = run.plain();
  auto& inputs = std::get<KdaCase>(padded.inputs).inputs;
  for (const char* name : {"q", "k", "v", "g", "beta"}) {
    Tensor& x = inputs.at(name);
    Shape shape = x.shape();
    shape[1] = kRows;
    x = joined(x, Tensor(x.dtype(), shape), 1);
  }
  auto got = run.answer(padded);
  if (!got) return not_applicable("padding", "the longer call is not served");
  got->o = slice(got->o, 1, 0, s.T);
  return law_result("padding", run.difference(*got));
}

void times(Tensor& x, double factor) {
  for (std::int64_t i = 0; i < x.size(); ++i) x.store(i, factor * load(x.view(), i));
}

/// A power of two, so that nothing but the exponents changes.
LawResult scaled(const LawRun& run) {
  Case doubled = run.plain();
  auto& inputs = std::get<KdaCase>(doubled.inputs).inputs;
  times(inputs.at("v"), 2);
  if (inputs.contains("initial_state")) times(inputs.at("initial_state"), 2);
  auto got = run.answer(doubled);
  if (!got) return not_applicable("scaled", "not served");
  times(got->o, 0.5);
  if (got->final_state) times(*got->final_state, 0.5);
  return law_result("scaled", run.difference(*got));
}

}  // namespace

std::vector<LawResult> value_laws(const LawRun& run) {
  constexpr std::pair<const char*, Law> kLaws[] = {{"split", split},
                                                   {"separate", separate},
                                                   {"sequences_permuted", sequences_permuted},
                                                   {"heads_permuted", heads_permuted},
                                                   {"untouched", untouched},
                                                   {"padding", padding},
                                                   {"scaled", scaled}};
  std::vector<LawResult> laws;
  if (!run.base().final_state) return {law_result("split", "no final state, though asked for")};
  for (const auto& [name, law] : kLaws) laws.push_back(one_law(name, law, run));
  return laws;
}

}  // namespace kda::harness
