#include "harness/mutate/judging.hpp"

#include "harness/case/named_outputs.hpp"
#include "harness/case/same_bits.hpp"
#include "harness/run/judge.hpp"
#include "harness/run/laws.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace kda::harness::mutate {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::optional<Outputs> f64_results(const Mutant& mutant, const Case& test_case) {
  try {
    return run(mutant, std::get<KdaCase>(test_case.inputs), Precision::kF64);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Tensor converted(const Tensor& x, Dtype dtype) {
  Tensor to(dtype, x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) to.store(i, load(x.view(), i));
  return to;
}

/// As a kernel would store them; the limits depend on that.
Outputs stored(const Outputs& f64, Dtype o) {
  Outputs out;
  out.o = converted(f64.o, o);
  if (f64.final_state) out.final_state = converted(*f64.final_state, Dtype::kF32);
  if (f64.h) out.h = converted(*f64.h, Dtype::kF32);
  return out;
}

/// Runs an implementation once a case, whatever asks how often.
Implementation remembered(const Implementation& faulty, const Case& test_case,
                          const KernelSettings& settings) {
  Implementation again = faulty;
  std::optional<Answer> answer;
  std::optional<Error> error;
  try {
    answer = faulty.run(test_case, settings);
  } catch (const Error& e) {
    error = e;
  }
  again.run = [answer, error](const Case&, const KernelSettings&) -> Answer {
    if (error) throw *error;
    return *answer;
  };
  return again;
}

const Policy* find(const std::string& policy) {
  return policy.empty() ? nullptr : &find_policy(policy);
}

/// Any answer but a pass; an exception that is no Error is a crash.
std::optional<std::string> verdict_on(const Case& test_case, const Implementation& faulty,
                                      const std::string& policy, const KernelSettings& settings) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): some write to their inputs
  const Case own = test_case;
  try {
    const CaseResult result = judge(own, faulty, find(policy), settings);
    if (!is_failure(result.verdict)) return std::nullopt;
    return std::string(name(result.verdict)) + " " + result.code;
  } catch (const std::exception& error) {
    return std::string("exception ") + error.what();
  }
}

std::optional<std::string> broken_law(const Case& test_case, const Implementation& faulty,
                                      const KernelSettings& settings) {
  try {
    for (const LawResult& law : check_laws(faulty, test_case, settings)) {
      if (law.verdict == Verdict::kFailed) return "law " + law.law;
    }
  } catch (const std::exception& error) {
    return std::string("exception ") + error.what();
  }
  return std::nullopt;
}

}  // namespace

double element_share(const CompareReport& report) {
  double most = 0;
  for (const TensorReport& tensor : report.tensors) {
    if (!tensor.worst) {
      if (!tensor.passed) most = kInf;
      continue;
    }
    const double error = std::abs(tensor.worst->got - tensor.worst->expected);
    double share = 0;
    if (error != 0) share = error / tensor.worst->bound;
    most = std::max(most, std::isnan(share) ? kInf : share);
    if (tensor.reason == "non_finite") most = kInf;
  }
  return most;
}

Class class_of(double effect) {
  if (effect > 10) return Class::kGross;
  return effect >= 1 ? Class::kSubtle : Class::kWithin;
}

Bench::Bench(const std::vector<SuiteCase>& suite, std::vector<std::string> policies)
    : suite_(suite), policies_(std::move(policies)) {
  const Mutant tokens = honest(Mutant::Form::kTokens);
  const Mutant chunks = honest(Mutant::Form::kChunks);
  for (const SuiteCase& one : suite_) {
    tokens_.push_back(f64_results(tokens, one.test_case));
    chunks_.push_back(f64_results(chunks, one.test_case));
  }
  for (const Mutant& form : {tokens, chunks}) admit(implementation_of(form), all_cases(), {});
}

std::vector<std::size_t> Bench::all_cases() const {
  std::vector<std::size_t> all(suite_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

void Bench::admit(const Implementation& honest, const std::vector<std::size_t>& cases,
                  const KernelSettings& settings) {
  for (const std::size_t i : cases) {
    const Case& test_case = suite_[i].test_case;
    const std::string start = honest.name + " on " + test_case.name + ": ";
    const Implementation again = remembered(honest, test_case, settings);
    for (const std::string& policy : policies_) {
      const auto why = verdict_on(test_case, again, policy, settings);
      if (why) unfit_.push_back(start + policy + ": " + *why);
    }
    if (!suite_[i].laws) continue;
    const auto why = broken_law(test_case, honest, settings);
    if (why) unfit_.push_back(start + "laws: " + *why);
  }
}

bool Bench::fit(const std::string& honest, std::size_t i, const std::string& rule) const {
  const std::string start = honest + " on " + suite_[i].test_case.name + ": " + rule + ": ";
  return std::ranges::none_of(unfit_, [&](const auto& line) { return line.starts_with(start); });
}

std::optional<std::string> Bench::killer(const Implementation& faulty, const std::string& honest,
                                         const std::string& policy,
                                         const std::vector<std::size_t>& cases,
                                         const KernelSettings& settings) const {
  for (const std::size_t i : cases) {
    if (!fit(honest, i, policy)) continue;
    const Case& test_case = suite_[i].test_case;
    if (const auto why = verdict_on(test_case, faulty, policy, settings)) {
      return test_case.name + ": " + *why;
    }
  }
  if (policy != policies_.front()) return std::nullopt;  // a tolerance alone knows no laws
  for (const std::size_t i : cases) {
    const Case& test_case = suite_[i].test_case;
    if (!suite_[i].laws || unsupported(faulty, test_case) || !fit(honest, i, "laws")) continue;
    if (const auto why = broken_law(test_case, faulty, settings)) {
      return test_case.name + ": " + *why;
    }
  }
  return std::nullopt;
}

void Bench::measure(const Mutant& mutant, MutantScore& score, std::vector<double>& effects) const {
  const auto& honest_results = mutant.form == Mutant::Form::kTokens ? tokens_ : chunks_;
  for (std::size_t i = 0; i < suite_.size(); ++i) {
    if (!honest_results[i]) continue;  // a case that must be refused
    const Case& test_case = suite_[i].test_case;
    const auto got = f64_results(mutant, test_case);
    if (got && same_bits(*got, *honest_results[i])) continue;
    score.alive = true;
    effects[i] = kInf;
    if (!got) continue;
    const auto& kda_case = std::get<KdaCase>(test_case.inputs);
    const Semantics semantics = check(kda_case.contract, kda_case.problem());
    const Outputs as_stored = stored(*got, kda_case.inputs.at("v").dtype());
    effects[i] = element_share(compare(kda_case, semantics, test_case.expected->tensors,
                                       by_name(as_stored), default_policy(Dtype::kF32)));
    score.effect = std::max(score.effect, effects[i]);
    if (score.effect > 10) break;  // the class is known, and the case that shows it
  }
}

MutantScore Bench::score(const Mutant& mutant) const {
  MutantScore score;
  score.name = mutant.name;
  score.what = mutant.what;
  score.group = "values";
  std::vector<double> effects(suite_.size(), 0);
  measure(mutant, score, effects);
  score.effect_class = class_of(score.effect);
  // Where the effect is largest first.
  std::vector<std::size_t> order = all_cases();
  std::ranges::stable_sort(order, [&](auto x, auto y) { return effects[x] > effects[y]; });
  const Implementation faulty = implementation_of(mutant);
  const std::string honest_name = honest(mutant.form).name;
  for (const std::string& policy : policies_) {
    const auto how = killer(faulty, honest_name, policy, order, {});
    if (how) score.killed[policy] = *how;
  }
  return score;
}

MutantScore Bench::score(const Implementation& faulty) const {
  MutantScore score;
  score.name = faulty.name;
  score.what = faulty.description;
  score.group = "protocol";
  score.alive = true;
  const std::string honest_name = honest(Mutant::Form::kTokens).name;
  for (const std::string& policy : policies_) {
    const auto how = killer(faulty, honest_name, policy, all_cases(), {});
    if (how) score.killed[policy] = *how;
  }
  return score;
}

}  // namespace kda::harness::mutate
