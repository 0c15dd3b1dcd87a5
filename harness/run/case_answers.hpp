#pragma once

#include "harness/case/case.hpp"
#include "harness/compare/compare.hpp"
#include "harness/compare/trust.hpp"

#include <list>
#include <map>
#include <string>
#include <string_view>

namespace kda::harness {

/// The right answers to one case, their deviations, and whether the case can be trusted: made when
/// first asked for and kept, so that all implementations judged on the case share them. Not for
/// several threads. Keeps a reference to the case.
class CaseAnswers {
 public:
  explicit CaseAnswers(const Case& test_case) : case_(test_case) {}

  [[nodiscard]] const Case& test_case() const noexcept { return case_; }

  /// What the case says itself, else what the reference `oracle` answers.
  [[nodiscard]] const Expected& expected(std::string_view oracle);

  [[nodiscard]] const CaseDeviations& deviations(const Semantics& semantics,
                                                 const reference::Formats& formats);

  /// Of `standard`, whose expected values are those of `oracle`.
  [[nodiscard]] const Trust& trust(const Semantics& semantics, const Standard& standard,
                                   std::string_view oracle);

 private:
  struct KeptTrust {
    std::string key;  ///< oracle, policy, formats
    Trust trust;
  };

  const Case& case_;
  std::map<std::string, Expected, std::less<>> expected_;
  std::list<CaseDeviations> deviations_;
  std::list<KeptTrust> trusts_;
};

/// For the KDA case of `semantics`.
[[nodiscard]] CaseDeviations deviations_of(const KdaCase& kda_case, const Semantics& semantics,
                                           const reference::Formats& formats);

}  // namespace kda::harness
