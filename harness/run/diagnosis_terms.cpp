#include "harness/run/diagnosis.hpp"

#include <algorithm>

namespace kda::harness {
namespace {

constexpr std::size_t kMostTerms = 4;

/// Square of the deviation of one element.
double variance_at(const reference::HeadDeviation& head, const Semantics& s, const Place& place) {
  const auto at = [](const std::vector<double>& values, std::int64_t i) {
    return values.empty() ? 0 : values[static_cast<std::size_t>(i)];
  };
  double sigma = 0;
  switch (place.kind) {
    case OutputKind::kO: sigma = at(head.o, *place.t * s.V + place.v); break;
    case OutputKind::kFinalState: sigma = at(head.final_state, *place.k * s.V + place.v); break;
    case OutputKind::kH: {
      const std::int64_t chunk =
          *place.chunk - s.sequences[static_cast<std::size_t>(place.n)].first_chunk;
      sigma = at(head.h, (chunk * s.K + *place.k) * s.V + place.v);
    }
  }
  return sigma * sigma;
}

}  // namespace

std::vector<BoundTerm> bound_terms(const FailedResult& failed, const Place& place) {
  const Semantics& s = failed.semantics;
  if (failed.standard.deviations == nullptr || s.B * s.T * s.K * s.V > FailedResult::kMostWork)
    return {};
  const Problem problem = failed.kda_case.problem();
  std::vector<BoundTerm> terms;
  double sum = 0;
  for (const reference::ErrorSource source : reference::all_error_sources()) {
    const auto head = reference::deviation_of_head(
        problem, s, reference::only(failed.standard.deviations->formats, source), place.n,
        place.hv - failed.standard.first_head);
    terms.push_back({std::string(name(source)), variance_at(head, s, place)});
    sum += terms.back().share;
  }
  if (!(sum > 0)) return {};
  std::ranges::sort(terms, std::ranges::greater{}, &BoundTerm::share);
  terms.resize(kMostTerms);
  for (BoundTerm& term : terms) term.share /= sum;
  std::erase_if(terms, [](const BoundTerm& term) { return !(term.share > 0); });
  return terms;
}

}  // namespace kda::harness
