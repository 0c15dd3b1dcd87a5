#include "harness/run/laws.hpp"

#include "harness/case/same_bits.hpp"
#include "harness/compare/compare.hpp"
#include "harness/implementation/fault.hpp"
#include "harness/run/case_edit.hpp"
#include "harness/run/oracle.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr int kRepeats = 4;

Case without_h(const Case& test_case) {
  Case plain = test_case;
  plain.expected.reset();
  Problem& options = std::get<KdaCase>(plain.inputs).options;
  options.return_intermediate_states = false;
  options.output_final_state = true;
  return plain;
}

bool same_inputs(const KdaCase& a, const KdaCase& b) {
  return std::ranges::all_of(a.inputs, [&](const auto& input) {
    return same_bits(input.second, b.inputs.at(input.first));
  });
}

/// The first half of every sequence.
std::vector<Part> first_halves(const Semantics& s) {
  std::vector<Part> parts = parts_of(s);
  for (Part& part : parts) part.end -= (part.end - part.begin) / 2;
  return parts;
}

/// References may add up in another order where a block has another length; kernels may not.
constexpr double kF64Slack = 1e-12;

double largest(const Tensor& x) {
  double most = 0;
  for (const double value : to_f64(x.view())) most = std::max(most, std::abs(value));
  return most;
}

/// Elements [begin, begin + count): the same bits, or of f64 the same numbers within `slack`.
bool same_row(const Tensor& a, const Tensor& b, std::int64_t begin, std::int64_t count,
              double slack) {
  const std::int64_t size = size_of(a.dtype());
  if (a.dtype() != Dtype::kF64) {
    return std::memcmp(a.data() + begin * size, b.data() + begin * size,
                       static_cast<std::size_t>(count * size)) == 0;
  }
  for (std::int64_t i = begin; i < begin + count; ++i) {
    if (!(std::abs(load(a.view(), i) - load(b.view(), i)) <= slack)) return false;
  }
  return true;
}

/// "" when the rows of `parts` are the same in both, else the first that is not.
std::string changed_row(const Tensor& a, const Tensor& b, const std::vector<Part>& parts) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return "o has another shape or dtype";
  const std::int64_t T = a.shape()[1];
  const std::int64_t row = a.size() / std::max<std::int64_t>(a.shape()[0] * T, 1);
  const double slack = a.dtype() == Dtype::kF64 ? kF64Slack * largest(a) : 0;
  for (const Part& part : parts) {
    for (std::int64_t t = part.begin; t < part.end; ++t) {
      if (!same_row(a, b, (part.b * T + t) * row, row, slack)) {
        return fmt::format("row {} of sequence {} (b={}) moved", t - part.begin, part.state,
                           part.b);
      }
    }
  }
  return "";
}

LawResult repeat(const LawRun& run) {
  for (int i = 1; i < kRepeats; ++i) {
    const auto again = run.answer(run.plain());
    if (!again) return not_applicable("repeat", "no answer");
    if (!same_bits(again->o, run.base().o))
      return law_result("repeat", "o differs from call to call");
    if (again->final_state && run.base().final_state &&
        !same_bits(*again->final_state, *run.base().final_state)) {
      return law_result("repeat", "final_state differs from call to call");
    }
  }
  return law_result("repeat", "");
}

LawResult inputs_unchanged(const LawRun& run) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the call may write to it
  const Case given = run.plain();
  const Case before = given;
  static_cast<void>(run.answer(given));
  const bool same = same_inputs(std::get<KdaCase>(before.inputs), std::get<KdaCase>(given.inputs));
  return law_result("inputs_unchanged", same ? "" : "an input was written to");
}

/// Other numbers that the contract accepts too: half the gates, beta and key, -v.
void disturb(Case& test_case, const std::vector<Part>& kept, const std::vector<Part>& whole) {
  auto& inputs = std::get<KdaCase>(test_case.inputs).inputs;
  for (const char* name : {"q", "k", "v", "g", "beta"}) {
    Tensor& x = inputs.at(name);
    const double factor = std::string_view(name) == "v" ? -1 : 0.5;
    const std::int64_t T = x.shape()[1];
    const std::int64_t row = x.size() / std::max<std::int64_t>(x.shape()[0] * T, 1);
    for (std::size_t n = 0; n < kept.size(); ++n) {
      const std::int64_t begin = (kept[n].b * T + kept[n].end) * row;
      const std::int64_t end = (whole[n].b * T + whole[n].end) * row;
      for (std::int64_t i = begin; i < end; ++i) x.store(i, factor * load(x.view(), i));
    }
  }
}

LawResult causal_edit(const LawRun& run) {
  const auto kept = first_halves(run.semantics());
  Case edited = run.plain();
  disturb(edited, kept, parts_of(run.semantics()));
  const auto got = run.answer(edited);
  if (!got) return not_applicable("causal_edit", "the edited call is not served");
  return law_result("causal_edit", changed_row(run.base().o, got->o, kept));
}

LawResult causal_cut(const LawRun& run) {
  const auto kept = first_halves(run.semantics());
  const bool packed = run.call().inputs.contains("cu_seqlens");
  if (!packed && kept.size() > 1) return not_applicable("causal_cut", "a batch");
  const auto got = run.answer(case_of_parts(run.plain(), kept, packed, run.states()));
  if (!got) return not_applicable("causal_cut", "the cut call is not served");
  Tensor o = run.base().o;
  put_parts(o, kept, got->o);
  return law_result("causal_cut", changed_row(run.base().o, o, kept));
}

}  // namespace

LawResult law_result(const char* law, std::string problem) {
  const Verdict verdict = problem.empty() ? Verdict::kPassed : Verdict::kFailed;
  return {law, verdict, std::move(problem)};
}

LawResult one_law(const char* name, Law law, const LawRun& run) {
  try {
    return law(run);
  } catch (const Error& error) {
    return law_result(name, error.what());
  } catch (const Fault& fault) {
    return law_result(name, fault.what());
  } catch (const Refusal& refusal) {
    return law_result(name, std::string("refused: ") + refusal.what());
  }
}

LawResult not_applicable(const char* law, std::string why) {
  return {law, Verdict::kUnsupported, std::move(why)};
}

void judge_by_laws(const Case& test_case, const Implementation& implementation,
                   const KernelSettings& settings, CaseResult& result) {
  std::vector<LawResult> laws;
  try {
    laws = check_laws(implementation, test_case, settings);
  } catch (const Fault& fault) {
    laws.push_back(law_result("repeat", fault.what()));
  } catch (const Refusal& refusal) {
    laws.push_back(law_result("repeat", std::string("refused: ") + refusal.what()));
  }
  const auto holds = [](const LawResult& law) { return law.verdict == Verdict::kPassed; };
  const auto broken = std::ranges::find(laws, Verdict::kFailed, &LawResult::verdict);
  if (broken == laws.end()) return;
  result.verdict = Verdict::kFailed;
  result.code = "law_broken";
  result.detail = fmt::format("{}: {}; {} other laws hold", broken->law, broken->detail,
                              std::ranges::count_if(laws, holds));
}

LawRun::LawRun(const Implementation& implementation, const Case& test_case,
               const KernelSettings& settings)
    : implementation_(implementation),
      settings_(settings),
      plain_(without_h(test_case)),
      semantics_(check(call().contract, call().problem())) {
  const Case given = plain_;  // not even a faulty call may change what the laws compare with
  base_ = std::get<Outputs>(implementation.run(given, settings));
}

const Tensor* LawRun::states() const {
  const auto found = call().inputs.find("initial_state");
  return found == call().inputs.end() ? nullptr : &found->second;
}

std::optional<Outputs> LawRun::answer(const Case& test_case) const {
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  if (!accepted(kda_case) || unsupported(implementation_, test_case)) return std::nullopt;
  return std::get<Outputs>(implementation_.run(test_case, settings_));
}

std::string LawRun::difference(const Outputs& got) const {
  std::map<std::string, Tensor> base;
  for (const auto& [name, tensor] : by_name(base_)) base.emplace(name, widened(tensor));
  const CompareReport report =
      compare(call(), semantics_, base, by_name(got), default_policy(Dtype::kF32));
  for (const TensorReport& tensor : report.tensors) {
    if (tensor.passed || tensor.used_share <= 2) continue;
    return tensor.name + ": " + tensor.detail;
  }
  return "";
}

std::vector<LawResult> check_laws(const Implementation& implementation, const Case& test_case,
                                  const KernelSettings& settings) {
  const auto* kda_case = std::get_if<KdaCase>(&test_case.inputs);
  if (kda_case == nullptr || unsupported(implementation, test_case) || !accepted(*kda_case))
    return {};
  const LawRun run(implementation, test_case, settings);
  std::vector<LawResult> laws;
  constexpr std::pair<const char*, Law> kLaws[] = {{"inputs_unchanged", inputs_unchanged},
                                                   {"repeat", repeat},
                                                   {"causal_edit", causal_edit},
                                                   {"causal_cut", causal_cut}};
  for (const auto& [name, law] : kLaws) laws.push_back(one_law(name, law, run));
  for (LawResult& law : value_laws(run)) laws.push_back(std::move(law));
  return laws;
}

}  // namespace kda::harness
