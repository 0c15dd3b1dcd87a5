#pragma once

#include "harness/case/case.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/run/judge.hpp"

#include <optional>
#include <string>
#include <vector>

// Checks that need no right answer: what must hold between the answers to related calls.

namespace kda::harness {

/// What came of one law.
struct LawResult {
  std::string law;
  Verdict verdict = Verdict::kPassed;  ///< kPassed, kFailed, or kUnsupported: does not apply here
  std::string detail;
};

/// Checks every law that applies to the case. To the bit:
///   inputs_unchanged   a call leaves its inputs as they were
///   repeat             equal calls have equal answers
///   causal_edit        tokens changed in the second half of each sequence leave the first half
///   causal_cut         so do sequences cut there (both: f64 answers, which references give, to
///                      1e-12 of the largest)
///   untouched          beta = 0 and log decay 0 leave the state (where the case can say so)
/// Within twice what the default policy allows one result, since both have errors:
///   split              first part, state handed over, second part = whole
///   separate           packed sequences, batch rows = calls of their own
///   sequences_permuted, heads_permuted   permute the answers
///   padding            rows with k = v = beta = 0 and log decay 0 change nothing
///   scaled             v and state doubled double o and state
/// A case that the contract refuses, or that is not KDA's, has no laws. Throws what the
/// implementation throws on the case itself.
[[nodiscard]] std::vector<LawResult> check_laws(const Implementation& implementation,
                                                const Case& test_case,
                                                const KernelSettings& settings = {});

/// Makes a passed result a failed one ("law_broken") when a law does not hold. The first broken one
/// is named, and how many hold.
void judge_by_laws(const Case& test_case, const Implementation& implementation,
                   const KernelSettings& settings, CaseResult& result);

/// One implementation on one case, with what the laws share. For laws*.cpp.
class LawRun {
 public:
  LawRun(const Implementation& implementation, const Case& test_case,
         const KernelSettings& settings);

  [[nodiscard]] const Case& plain() const { return plain_; }
  [[nodiscard]] const KdaCase& call() const { return std::get<KdaCase>(plain_.inputs); }
  [[nodiscard]] const Semantics& semantics() const { return semantics_; }
  [[nodiscard]] const Outputs& base() const { return base_; }
  /// The initial states of `plain`, or nullptr.
  [[nodiscard]] const Tensor* states() const;

  /// The answer to another call; nothing when its contract or the implementation's own limits
  /// exclude it. A refusal of a call that the contract accepts throws.
  [[nodiscard]] std::optional<Outputs> answer(const Case& test_case) const;

  /// Both within twice the bound of one: "" or the first line of what is not.
  [[nodiscard]] std::string difference(const Outputs& got) const;

 private:
  const Implementation& implementation_;
  KernelSettings settings_;
  Case plain_;  ///< final state asked for, h not
  Semantics semantics_;
  Outputs base_;
};

/// A passed or failed law, by whether `problem` is empty.
[[nodiscard]] LawResult law_result(const char* law, std::string problem);
[[nodiscard]] LawResult not_applicable(const char* law, std::string why);

using Law = LawResult (*)(const LawRun& run);
/// What the law says; whatever the implementation throws breaks it.
[[nodiscard]] LawResult one_law(const char* name, Law law, const LawRun& run);

[[nodiscard]] std::vector<LawResult> value_laws(const LawRun& run);

}  // namespace kda::harness
