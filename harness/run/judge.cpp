#include "harness/run/judge.hpp"

#include "harness/implementation/fault.hpp"
#include "harness/run/call.hpp"
#include "harness/run/diagnosis.hpp"
#include "harness/run/oracle.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <exception>
#include <initializer_list>
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
  using enum ErrorCode;
  const auto is_one_of = [code](std::initializer_list<ErrorCode> codes) {
    return std::ranges::any_of(codes, [code](ErrorCode one) { return code == name(one); });
  };
  if (is_one_of({kExecutorFault, kCudaRuntime, kDeviceLost, kOutOfMemory})) {
    set(result, Verdict::kFailed, code, message);  // a fault of the kernel, not a refusal
  } else if (is_one_of({kDeviceUnavailable, kArchitectureUnsupported})) {
    set(result, Verdict::kSkipped, code, message);
  } else if (code == name(kImplementationUnsupported)) {
    set(result, Verdict::kUnsupported, code, message);
  } else if (!expected.error) {
    set(result, Verdict::kRefused, code, "refused a case that its contract accepts: " + message);
  } else if (*expected.error == code) {
    set(result, Verdict::kPassed, code, message);
  } else {
    const char* known = find_error(code) == nullptr ? ", which is no code of kdacheck" : "";
    set(result, Verdict::kFailed, code,
        "expected error " + *expected.error + ", got " + std::string(code) + known + ": " +
            message);
  }
}

void accepted_wrongly(const std::string& error, CaseResult& result) {
  set(result, Verdict::kFailed, "accepted", "expected error " + error + ", got an answer");
}

/// The comparison decides, unless the case cannot tell right from wrong: then it decides nothing.
void judge_comparison(CompareReport comparison, const Trust& trust, CaseResult& result) {
  result.policy = comparison.policy;
  result.skipped_probes = trust.skipped();
  result.unprobed = trust.unprobed();
  if (const std::optional<Doubt> doubt = trust.doubt()) {
    set(result, Verdict::kMistrusted, doubt->code, doubt->detail);
  } else if (!comparison.passed()) {
    const TensorReport* worst = comparison.worst();
    set(result, Verdict::kFailed, worst->reason, worst->name + ": " + worst->detail);
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

/// Who is judged and how.
struct Subject {
  const Implementation& implementation;
  const Judging& judging;

  /// Of an answer. The user knows best; next what the answer itself states.
  [[nodiscard]] StatedFormats formats(const std::optional<StatedFormats>& of_answer) const {
    return judging.formats ? *judging.formats : of_answer.value_or(implementation.formats);
  }
};

/// Runs the implementation and adds its time to `result`.
Outcome timed(const Subject& subject, const Case& test_case, CaseResult& result) {
  return call(subject.implementation, test_case, subject.judging.kernels, subject.judging.repeats,
              result.seconds);
}

std::map<std::string, Tensor> tensors_of(Outcome& outcome) {
  return by_name(std::get<Outputs>(std::move(*outcome.answer)));
}

/// What results of `stated` formats are held against; `answers` keeps what it refers to.
Standard standard_for(CaseAnswers& answers, const Semantics& semantics, const Policy& policy,
                      const StatedFormats& stated, std::string_view oracle) {
  Standard standard{.expected = answers.expected(oracle).tensors, .policy = policy};
  if (policy.deviations) {
    const Problem problem = std::get<KdaCase>(answers.test_case().inputs).problem();
    standard.deviations = &answers.deviations(semantics, formats_of(stated, problem));
  }
  return standard;
}

/// Where and why, once a result has failed.
void explain(const Case& test_case, const FailedResult& failed, const CompareReport& comparison,
             const Judging& judging, CaseResult& result) {
  const TensorReport* worst = comparison.worst();
  result.diagnosis =
      to_text(diagnose(failed, worst->worst ? std::optional(worst->worst->place) : std::nullopt));
  if (!judging.keep_evidence) return;
  result.evidence = std::make_shared<Evidence>();
  result.evidence->test_case = test_case;
  if (!test_case.expected) {
    result.evidence->test_case.expected = Expected{};
    result.evidence->test_case.expected->tensors = failed.standard.expected;
    result.evidence->test_case.oracle = oracle_name(result.oracle);
  }
  result.evidence->got = failed.got;
  if (failed.standard.deviations != nullptr)
    result.evidence->deviations = *failed.standard.deviations;
}

void judge_tensors(CaseAnswers& answers, const Semantics& semantics,
                   const std::map<std::string, Tensor>& got, const Judging& judging,
                   const StatedFormats& stated, CaseResult& result) {
  const Standard standard =
      standard_for(answers, semantics, policy_for(got, judging.policy), stated, result.oracle);
  CompareReport comparison = compare(semantics, standard, got);
  judge_comparison(std::move(comparison), answers.trust(semantics, standard, result.oracle),
                   result);
  if (result.verdict != Verdict::kFailed) return;
  const auto& kda_case = std::get<KdaCase>(answers.test_case().inputs);
  explain(answers.test_case(), {kda_case, semantics, standard, got}, *result.comparison, judging,
          result);
}

void judge_whole(CaseAnswers& answers, const std::optional<Semantics>& semantics,
                 const Subject& subject, CaseResult& result) {
  const Expected& expected = answers.expected(result.oracle);
  Outcome outcome = timed(subject, answers.test_case(), result);
  if (outcome.error)
    return judge_error(expected, outcome.error->code, outcome.error->message, result);
  if (expected.error || !semantics)
    return accepted_wrongly(expected.error.value_or("of the contract"), result);
  const StatedFormats formats = subject.formats(outcome.formats);
  judge_tensors(answers, *semantics, tensors_of(outcome), subject.judging, formats, result);
}

/// As judge_whole, holding the f64 outputs of one head at a time.
void judge_heads(const Case& test_case, const Semantics& semantics, const Subject& subject,
                 CaseResult& result) {
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  std::map<std::string, Tensor> whole;
  std::optional<StatedFormats> stated;
  if (!subject.implementation.by_head) {
    Outcome outcome = timed(subject, test_case, result);
    if (outcome.error) return judge_error({}, outcome.error->code, outcome.error->message, result);
    stated = outcome.formats;
    whole = tensors_of(outcome);
  }
  CompareReport merged;
  Trust trust;
  for (std::int64_t hv = 0; hv < semantics.HV; ++hv) {
    Case part;
    part.op = test_case.op;
    part.inputs = take_head(kda_case, hv);
    const auto& head = std::get<KdaCase>(part.inputs);
    std::map<std::string, Tensor> got;
    if (subject.implementation.by_head) {
      Outcome outcome = timed(subject, part, result);
      if (outcome.error)
        return judge_error({}, outcome.error->code, outcome.error->message, result);
      stated = outcome.formats;
      got = tensors_of(outcome);
    } else {
      got = take_head(whole, hv);
    }
    const Semantics meaning = check(head.contract, head.problem());
    CaseAnswers answers(part);
    Standard standard = standard_for(answers, meaning, policy_for(got, subject.judging.policy),
                                     subject.formats(stated), result.oracle);
    standard.first_head = hv;
    CompareReport comparison = compare(meaning, standard, got);
    if (!comparison.passed() && result.diagnosis.empty())  // the first head that fails
      explain(part, {head, meaning, standard, got}, comparison, subject.judging, result);
    merge(merged, std::move(comparison), standard.policy);
    trust.add(meaning, standard);
  }
  judge_comparison(std::move(merged), trust, result);
  if (result.verdict == Verdict::kFailed) return;
  result.diagnosis.clear();
  result.evidence.reset();
}

void judge_kda(CaseAnswers& answers, const Subject& subject, CaseResult& result) {
  const Case& test_case = answers.test_case();
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  const std::optional<Semantics> semantics = accepted(kda_case);
  if (!test_case.expected) {
    result.oracle = oracle_for(kda_case, subject.implementation.name);
    if (semantics && judged_by_head(*semantics))
      return judge_heads(test_case, *semantics, subject, result);
  }
  judge_whole(answers, semantics, subject, result);
}

void judge_numbers(CaseAnswers& answers, const Subject& subject, CaseResult& result) {
  const Case& test_case = answers.test_case();
  const Outcome outcome = timed(subject, test_case, result);
  if (!test_case.expected)
    result.oracle = subject.implementation.name == "reference" ? "chunked" : "reference";
  const Expected& expected = answers.expected(result.oracle);
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

CaseResult judge(CaseAnswers& answers, const Implementation& implementation,
                 const Judging& judging) {
  const Case& test_case = answers.test_case();
  const Subject subject{implementation, judging};
  CaseResult result = described(test_case);
  result.implementation = implementation.name;
  if (const auto why = unsupported(implementation, test_case)) {
    set(result, Verdict::kUnsupported, "unsupported", *why);
    return result;
  }
  try {
    if (contract_of(test_case.op)) {
      judge_kda(answers, subject, result);
    } else {
      judge_numbers(answers, subject, result);
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

CaseResult judge(const Case& test_case, const Implementation& implementation, const Policy* policy,
                 const KernelSettings& settings, std::int64_t repeats) {
  CaseAnswers answers(test_case);
  Judging judging;
  judging.policy = policy;
  judging.kernels = settings;
  judging.repeats = repeats;
  return judge(answers, implementation, judging);
}

CaseResult judge_result(const Case& test_case, const std::map<std::string, Tensor>& got,
                        const std::optional<std::string>& error, const std::string& message,
                        const Judging& judging) {
  CaseAnswers answers(test_case);
  CaseResult result = described(test_case);
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  if (!test_case.expected) result.oracle = oracle_for(kda_case, "");
  const Expected& expected = answers.expected(result.oracle);
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
    judge_tensors(answers, *semantics, got, judging, judging.formats.value_or(StatedFormats{}),
                  result);
  }
  return result;
}

}  // namespace kda::harness
