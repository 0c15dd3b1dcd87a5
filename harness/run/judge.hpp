#pragma once

#include "harness/case/case.hpp"
#include "harness/compare/compare.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/run/verdict.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kda::harness {

/// The verdict on one case and one implementation, with what led to it.
struct CaseResult {
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
  double seconds = 0;   ///< of the implementation alone
  std::string command;  ///< repeats this one case and implementation
};

/// Runs an implementation on a case and judges the answer. Without a policy the result's dtype
/// chooses (default_policy). Cases without expected values are judged against a reference that is
/// not the implementation itself. The implementation is called `repeats` times and must give the
/// same bits. Never throws for what the implementation does wrong; Interrupted passes through.
[[nodiscard]] CaseResult judge(const Case& test_case, const Implementation& implementation,
                               const Policy* policy, const KernelSettings& settings = {},
                               std::int64_t repeats = 1);

/// Judges a result that exists already (from a file) in the same way.
[[nodiscard]] CaseResult judge_result(const Case& test_case,
                                      const std::map<std::string, Tensor>& got,
                                      const std::optional<std::string>& error,
                                      const std::string& message, const Policy* policy);

/// "fit" and "predict": numbers within the tolerances that the condition of the design allows.
void judge_fit(const FitCase& fit_case, const Expected& expected, const FitAnswer& answer,
               CaseResult& result);
void judge_predict(const Expected& expected, const PredictAnswer& answer, CaseResult& result);

}  // namespace kda::harness
