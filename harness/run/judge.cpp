#include "harness/run/judge.hpp"

#include "harness/implementation/fault.hpp"
#include "harness/run/call.hpp"
#include "harness/run/oracle.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace kda::harness {
namespace {

void set(CaseResult& result, Verdict verdict, std::string_view code, std::string detail) {
  result.verdict = verdict;
  result.code = code;
  result.detail = std::move(detail);
}

/// An error came where `expected` says what should have.
void judge_error(const Expected& expected, std::string_view code, const std::string& message,
                 CaseResult& result) {
  if (code == name(ErrorCode::kExecutorFault) || code == name(ErrorCode::kCudaRuntime)) {
    set(result, Verdict::kFailed, code, message);  // a fault of the kernel, not a refusal
  } else if (code == name(ErrorCode::kDeviceUnavailable)) {
    set(result, Verdict::kSkipped, code, message);
  } else if (code == name(ErrorCode::kImplementationUnsupported)) {
    set(result, Verdict::kUnsupported, code, message);
  } else if (!expected.error) {
    set(result, Verdict::kRefused, code, "refused a case that its contract accepts: " + message);
  } else if (*expected.error == code) {
    set(result, Verdict::kPassed, code, message);
  } else {
    set(result, Verdict::kFailed, code,
        "expected error " + *expected.error + ", got " + std::string(code) + ": " + message);
  }
}

void accepted_wrongly(const std::string& error, CaseResult& result) {
  set(result, Verdict::kFailed, "accepted", "expected error " + error + ", got an answer");
}

/// The comparison decides; a comparison that zeros would pass too decides nothing.
void judge_comparison(CompareReport comparison, CaseResult& result) {
  result.policy = comparison.policy;
  if (!comparison.passed()) {
    const TensorReport* worst = comparison.worst();
    set(result, Verdict::kFailed, worst->reason, worst->name + ": " + worst->detail);
  } else if (!comparison.trusted()) {
    set(result, Verdict::kMistrusted, "zeros_would_pass", "a result of zeros would pass this case");
  } else {
    set(result, Verdict::kPassed, "", "");
  }
  result.comparison = std::move(comparison);
}

const Policy& policy_for(const std::map<std::string, Tensor>& got, const Policy* chosen) {
  if (chosen != nullptr) return *chosen;
  const auto o = got.find("o");
  return default_policy(o == got.end() ? Dtype::kF32 : o->second.dtype());
}

/// Adds the report on one more head to the whole.
void merge(CompareReport& whole, CompareReport part, std::int64_t hv) {
  for (TensorReport& tensor : part.tensors) {
    if (tensor.worst) tensor.worst->place.hv = hv;
    if (tensor.first_bad) tensor.first_bad->place.hv = hv;
    const auto same = std::ranges::find(whole.tensors, tensor.name, &TensorReport::name);
    if (same == whole.tensors.end()) {
      whole.tensors.push_back(std::move(tensor));
      continue;
    }
    Metrics metrics = same->metrics;
    metrics.merge(tensor.metrics);
    TokenProfile tokens = same->tokens;
    tokens.merge(tensor.tokens);
    const bool vacuous = same->zeros_would_pass && tensor.zeros_would_pass;
    const bool worse =
        same->passed != tensor.passed ? !tensor.passed : !(tensor.used_share <= same->used_share);
    if (worse) *same = std::move(tensor);
    same->metrics = metrics;
    same->tokens = std::move(tokens);
    same->zeros_would_pass = vacuous;
  }
  whole.policy = part.policy;
}

/// Who is judged and by what.
struct Subject {
  const Implementation& implementation;
  const Policy* policy;
  const KernelSettings& settings;
  std::int64_t repeats;
};

/// Runs the implementation and adds its time to `result`.
Outcome timed(const Subject& subject, const Case& test_case, CaseResult& result) {
  return call(subject.implementation, test_case, subject.settings, subject.repeats, result.seconds);
}

std::map<std::string, Tensor> tensors_of(Outcome& outcome) {
  return by_name(std::get<Outputs>(std::move(*outcome.answer)));
}

void judge_whole(const Case& test_case, const std::optional<Semantics>& semantics,
                 const Expected& expected, const Subject& subject, CaseResult& result) {
  Outcome outcome = timed(subject, test_case, result);
  if (outcome.error)
    return judge_error(expected, outcome.error->code, outcome.error->message, result);
  if (expected.error || !semantics)
    return accepted_wrongly(expected.error.value_or("of the contract"), result);
  const auto got = tensors_of(outcome);
  judge_comparison(compare(std::get<KdaCase>(test_case.inputs), *semantics, expected.tensors, got,
                           policy_for(got, subject.policy)),
                   result);
}

/// As judge_whole, holding the f64 outputs of one head at a time.
void judge_heads(const Case& test_case, const Semantics& semantics, const Subject& subject,
                 CaseResult& result) {
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  std::map<std::string, Tensor> whole;
  if (!subject.implementation.by_head) {
    Outcome outcome = timed(subject, test_case, result);
    if (outcome.error) return judge_error({}, outcome.error->code, outcome.error->message, result);
    whole = tensors_of(outcome);
  }
  CompareReport merged;
  for (std::int64_t hv = 0; hv < semantics.HV; ++hv) {
    Case part;
    part.op = test_case.op;
    part.inputs = take_head(kda_case, hv);
    const auto& head = std::get<KdaCase>(part.inputs);
    const Expected expected = expected_from(part, result.oracle);
    std::map<std::string, Tensor> got;
    if (subject.implementation.by_head) {
      Outcome outcome = timed(subject, part, result);
      if (outcome.error)
        return judge_error({}, outcome.error->code, outcome.error->message, result);
      got = tensors_of(outcome);
    } else {
      got = take_head(whole, hv);
    }
    const Semantics meaning = check(head.contract, head.problem());
    merge(merged, compare(head, meaning, expected.tensors, got, policy_for(got, subject.policy)),
          hv);
  }
  judge_comparison(std::move(merged), result);
}

std::optional<Semantics> accepted(const KdaCase& kda_case) {
  try {
    return check(kda_case.contract, kda_case.problem());
  } catch (const Error&) {
    return std::nullopt;
  }
}

void judge_kda(const Case& test_case, const Subject& subject, CaseResult& result) {
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  const std::optional<Semantics> semantics = accepted(kda_case);
  if (test_case.expected) {
    return judge_whole(test_case, semantics, *test_case.expected, subject, result);
  }
  result.oracle = oracle_for(kda_case, subject.implementation.name);
  if (semantics && judged_by_head(*semantics))
    return judge_heads(test_case, *semantics, subject, result);
  judge_whole(test_case, semantics, expected_from(test_case, result.oracle), subject, result);
}

void judge_numbers(const Case& test_case, const Subject& subject, CaseResult& result) {
  const Outcome outcome = timed(subject, test_case, result);
  if (!test_case.expected)
    result.oracle = subject.implementation.name == "reference" ? "chunked" : "reference";
  const Expected expected =
      test_case.expected ? *test_case.expected : expected_from(test_case, result.oracle);
  if (outcome.error) {
    judge_error(expected, outcome.error->code, outcome.error->message, result);
  } else if (test_case.op == Op::kFit) {
    judge_fit(std::get<FitCase>(test_case.inputs), expected, std::get<FitAnswer>(*outcome.answer),
              result);
  } else {
    judge_predict(expected, std::get<PredictAnswer>(*outcome.answer), result);
  }
}

CaseResult described(const Case& test_case) {
  CaseResult result;
  result.case_name = test_case.name;
  result.file = test_case.file.string();
  result.line = test_case.line;
  result.op = name(test_case.op);
  result.tags = test_case.tags;
  result.oracle = test_case.oracle;
  return result;
}

}  // namespace

CaseResult judge(const Case& test_case, const Implementation& implementation, const Policy* policy,
                 const KernelSettings& settings, std::int64_t repeats) {
  const Subject subject{implementation, policy, settings, repeats};
  CaseResult result = described(test_case);
  result.implementation = implementation.name;
  if (const auto why = unsupported(implementation, test_case)) {
    set(result, Verdict::kUnsupported, "unsupported", *why);
    return result;
  }
  try {
    if (contract_of(test_case.op)) {
      judge_kda(test_case, subject, result);
    } else {
      judge_numbers(test_case, subject, result);
    }
  } catch (const Error& error) {
    judge_error(test_case.expected.value_or(Expected{}), name(error.code()), error.message(),
                result);
  } catch (const Fault& fault) {
    set(result, fault.verdict(), fault.code(), fault.what());
    result.output = fault.output();
  } catch (const std::bad_alloc&) {
    set(result, Verdict::kFailed, name(ErrorCode::kOutOfMemory), "ran out of memory");
  } catch (const std::exception& error) {
    set(result, Verdict::kFailed, "exception",
        std::string("unexpected exception: ") + error.what());
  }
  if (result.verdict == Verdict::kFailed && result.comparison && implementation.diagnose)
    result.detail += "; " + implementation.diagnose(test_case);
  return result;
}

CaseResult judge_result(const Case& test_case, const std::map<std::string, Tensor>& got,
                        const std::optional<std::string>& error, const std::string& message,
                        const Policy* policy) {
  CaseResult result = described(test_case);
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  if (!test_case.expected) result.oracle = oracle_for(kda_case, "");
  const Expected expected =
      test_case.expected ? *test_case.expected : expected_from(test_case, result.oracle);
  if (error) {
    judge_error(expected, *error, message, result);
  } else if (expected.error) {
    accepted_wrongly(*expected.error, result);
  } else {
    const std::optional<Semantics> semantics = accepted(kda_case);
    if (!semantics) {
      throw Error(ErrorCode::kExpectedShape,
                  test_case.file.string() +
                      ": the fixture expects tensors, but its contract refuses the case",
                  "correct the fixture; kdacheck check names the rule");
    }
    judge_comparison(compare(kda_case, *semantics, expected.tensors, got, policy_for(got, policy)),
                     result);
  }
  return result;
}

}  // namespace kda::harness
