#include "harness/run/case_answers.hpp"

#include "harness/compare/formats.hpp"
#include "harness/run/oracle.hpp"

#include <algorithm>

namespace kda::harness {
namespace {

/// State elements times tokens below which starting threads costs more than they save.
constexpr std::int64_t kFewElements = 20'000'000;

}  // namespace

CaseDeviations deviations_of(const KdaCase& kda_case, const Semantics& semantics,
                             const reference::Formats& formats) {
  const Semantics& s = semantics;
  reference::FastOptions options;
  if (s.B * s.T * s.HV * s.K * s.V < kFewElements) options.threads = 1;
  return {formats, reference::deviations(kda_case.problem(), s, formats, options)};
}

const Expected& CaseAnswers::expected(std::string_view oracle) {
  if (case_.expected) return *case_.expected;
  const auto known = expected_.find(oracle);
  if (known != expected_.end()) return known->second;
  return expected_.emplace(oracle, expected_from(case_, oracle)).first->second;
}

const CaseDeviations& CaseAnswers::deviations(const Semantics& semantics,
                                              const reference::Formats& formats) {
  const auto known = std::ranges::find(deviations_, formats, &CaseDeviations::formats);
  if (known != deviations_.end()) return *known;
  deviations_.push_back(deviations_of(std::get<KdaCase>(case_.inputs), semantics, formats));
  return deviations_.back();
}

const Trust& CaseAnswers::trust(const Semantics& semantics, const Standard& standard,
                                std::string_view oracle) {
  std::string key = std::string(oracle) + " " + std::string(standard.policy.name);
  if (standard.deviations != nullptr) key += " " + to_string(standard.deviations->formats);
  const auto known = std::ranges::find(trusts_, key, &KeptTrust::key);
  if (known != trusts_.end()) return known->trust;
  trusts_.push_back({std::move(key), {}});
  trusts_.back().trust.add(semantics, standard);
  return trusts_.back().trust;
}

}  // namespace kda::harness
