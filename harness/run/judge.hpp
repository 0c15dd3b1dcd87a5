#pragma once

#include "harness/base/verdict.hpp"
#include "harness/case/case.hpp"
#include "harness/compare/compare.hpp"
#include "harness/compare/trust.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/run/case_answers.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kda::harness {

/// What a failed result can be judged again from.
struct Evidence {
  Case test_case;  ///< with expected values; one head of a large case
  std::map<std::string, Tensor> got;
  std::optional<CaseDeviations> deviations;
};

/// The verdict on one case and one implementation, with what led to it.
struct CaseResult {
  std::int64_t item = 0;  ///< place of the case among all that were asked for, shards together
  std::string case_name;
  std::string file;  ///< as given on the command line; empty for case lines
  std::string line;  ///< the case line; empty for files
  std::string op;
  std::string tags;            ///< of the fixture, comma-separated; the first names its family
  std::string implementation;  ///< empty for fixture errors
  Verdict verdict = Verdict::kPassed;
  std::string code;    ///< of the error raised, or the reason of the first failing tensor
  std::string detail;  ///< one line
  std::string output;  ///< the end of what the implementation's own process printed, if it failed
  std::string known;   ///< of a known failure: reason and expiry date
  std::string oracle;  ///< what made the expected values
  std::string policy;  ///< what judged; empty where codes or numbers were compared
  std::optional<CompareReport> comparison;
  std::vector<std::string> skipped_probes;  ///< "o heads rotated": those that change nothing here
  std::vector<std::string> unprobed;        ///< tensors that no probe changes
  std::string diagnosis;                    ///< of a failure: where, and what it looks like; lines
  std::shared_ptr<Evidence> evidence;       ///< of a failure, when asked for
  std::string capsule;  ///< arguments of `compare` that judge the failure again, when it was saved
  double seconds = 0;   ///< of the implementation alone
  std::string command;  ///< repeats this one case and implementation
};

/// How to judge.
struct Judging {
  const Policy* policy = nullptr;  ///< none: the dtype of the result chooses (default_policy)
  KernelSettings kernels;
  std::optional<StatedFormats> formats;  ///< in place of what the implementation states
  std::int64_t repeats = 1;              ///< calls of each case, which must give the same bits
  bool keep_evidence = false;            ///< of failures
};

/// Runs an implementation on a case and judges the answer. Cases without expected values are judged
/// against a reference that is not the implementation itself. A case that cannot tell a wrong
/// result from this one's is kMistrusted, whether the result passes or fails. The implementation
/// is called `repeats` times and must give the same bits. Never throws for what it does wrong;
/// Interrupted passes through.
[[nodiscard]] CaseResult judge(CaseAnswers& answers, const Implementation& implementation,
                               const Judging& judging);
[[nodiscard]] CaseResult judge(const Case& test_case, const Implementation& implementation,
                               const Policy* policy, const KernelSettings& settings = {},
                               std::int64_t repeats = 1);

/// Judges a result that exists already (from a file) in the same way.
[[nodiscard]] CaseResult judge_result(const Case& test_case,
                                      const std::map<std::string, Tensor>& got,
                                      const std::optional<std::string>& error,
                                      const std::string& message, const Judging& judging);

/// "fit" and "predict": numbers within the tolerances that the condition of the design allows.
void judge_fit(const FitCase& fit_case, const Expected& expected, const FitAnswer& answer,
               CaseResult& result);
void judge_predict(const Expected& expected, const PredictAnswer& answer, CaseResult& result);

}  // namespace kda::harness
