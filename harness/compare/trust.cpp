#include "harness/compare/trust.hpp"

#include "harness/compare/compare_blocks.hpp"
#include "harness/compare/compare_sigma.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Of RMS(exact): above it the rounding errors that the formats make unavoidable are no longer
/// small, and an implementation that is wrong by a tenth looks like an honest one.
constexpr double kMostSigma = 0.1;
/// RMS(exact / sigma) of a row that even zeros would pass, as the test of rows goes.
constexpr double kHidden = 4;
/// Beyond any honest element; only where values are next to the end of a format does it matter.
constexpr double kFarthest = 8;

double square(double x) { return x * x; }

double range_of(OutputKind kind, const reference::Formats& formats) {
  return reference::largest(kind == OutputKind::kO ? formats.output : formats.state);
}

std::string label(OutputKind kind, Probe probe) {
  return fmt::format("{} {}", name(kind), name(probe));
}

}  // namespace

void Trust::add(const Semantics& semantics, const Standard& standard) {
  const CaseDeviations* deviations = standard.policy.deviations ? standard.deviations : nullptr;
  std::optional<KeyCounts> keys;
  if (deviations != nullptr) keys.emplace(semantics, deviations->sigma.keys);
  const JudgedCase judged{semantics, standard.policy, deviations, keys ? &*keys : nullptr};
  for (const OutputKind kind : wanted_outputs(semantics)) {
    const Tensor& exact = standard.expected.at(std::string(name(kind)));
    look(kind, judged, exact);
    probe(kind, judged, exact);
  }
}

void Trust::probe(OutputKind kind, const JudgedCase& judged, const Tensor& exact) {
  for (const Probe probe : probes_of(kind)) {
    Outcome& outcome = probes_[{kind, probe}];
    if (outcome == Outcome::kRefused) continue;  // by an earlier head: enough for the whole
    const std::optional<Tensor> wrong = spoilt(probe, kind, judged.semantics, exact);
    if (!wrong) continue;
    outcome = accepts(kind, judged, exact, *wrong) ? Outcome::kPassed : Outcome::kRefused;
  }
}

void Trust::Sight::add_row(std::span<const double> exact, std::span<const double> sigma) {
  double ratio2 = 0;
  bool some = false;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    finite = finite && std::isfinite(exact[i]);
    largest = std::max(largest, std::abs(exact[i]) + kFarthest * sigma[i]);
    some = some || exact[i] != 0;
    if (exact[i] != 0) ratio2 += square(exact[i] / sigma[i]);  // infinite without sigma
    if (sigma[i] == 0) continue;
    sigma2 += square(sigma[i]);
    exact2 += square(exact[i]);
  }
  if (!some) return;
  nonzero = true;
  ++rows;
  if (ratio2 <= square(kHidden) * static_cast<double>(exact.size())) ++hidden;
}

void Trust::look(OutputKind kind, const JudgedCase& judged, const Tensor& exact) {
  Sight& sight = sights_[kind];
  const Tensor* sigmas =
      judged.deviations != nullptr ? sigma_of(*judged.deviations, kind) : nullptr;
  if (judged.deviations != nullptr) sight.range = range_of(kind, judged.deviations->formats);
  for (const Block& block : blocks_of(kind, judged.semantics, {exact, exact, sigmas})) {
    const std::vector<double> values = to_f64(block.expected);
    std::vector<double> sigma(values.size());
    if (sigmas != nullptr) sigma = to_f64(block.sigma);
    const auto cols = static_cast<std::size_t>(block.cols());
    for (std::size_t first = 0; first < values.size(); first += cols)
      sight.add_row(std::span(values).subspan(first, cols), std::span(sigma).subspan(first, cols));
    sight.elements += block.rows() * block.cols();
  }
}

std::optional<Doubt> Trust::doubt() const {
  for (const auto& [kind, sight] : sights_) {
    if (!sight.finite)
      return Doubt{"vacuous", fmt::format("{}: the exact result is not finite", name(kind))};
  }
  const auto o = sights_.find(OutputKind::kO);
  if (o != sights_.end() && o->second.elements > 0 && !o->second.nonzero)
    return Doubt{"vacuous", "o: every exact value is 0"};
  for (const auto& [probe, outcome] : probes_) {
    if (outcome == Outcome::kPassed) {
      return Doubt{"probe_passed",
                   label(probe.first, probe.second) + " would pass, so that a pass proves nothing"};
    }
  }
  for (const auto& [kind, sight] : sights_) {
    if (kind == OutputKind::kH) continue;
    if (!(sight.sigma2 <= square(kMostSigma) * sight.exact2)) {
      return Doubt{
          "ill_conditioned",
          fmt::format("{}: these formats alone cause errors of {:.3g}% (RMS), wanted at "
                      "most {:.3g}%",
                      name(kind), 100 * std::sqrt(sight.sigma2 / sight.exact2), 100 * kMostSigma)};
    }
    if (2 * sight.hidden > sight.rows) {
      return Doubt{"unjudgeable", fmt::format("{}: {} of {} rows lie within {} sigma of 0",
                                              name(kind), sight.hidden, sight.rows, kHidden)};
    }
  }
  for (const auto& [kind, sight] : sights_) {
    if (sight.largest <= sight.range) continue;
    return Doubt{
        "out_of_range",
        fmt::format("{}: a right result may reach {:.4g} ({} sigma from the exact one), and "
                    "the format stated for it ends at {:.4g}",
                    name(kind), sight.largest, kFarthest, sight.range)};
  }
  return std::nullopt;
}

std::vector<std::string> Trust::skipped() const {
  std::vector<std::string> labels;
  for (const auto& [probe, outcome] : probes_) {
    if (outcome == Outcome::kSkipped) labels.push_back(label(probe.first, probe.second));
  }
  return labels;
}

std::vector<std::string> Trust::unprobed() const {
  std::vector<std::string> tensors;
  for (const auto& [kind, sight] : sights_) {
    const bool probed = std::ranges::any_of(probes_, [&, tensor = kind](const auto& entry) {
      return entry.first.first == tensor && entry.second != Outcome::kSkipped;
    });
    if (!probed && sight.elements > 0) tensors.emplace_back(name(kind));
  }
  return tensors;
}

}  // namespace kda::harness
