#include "harness/compare/compare.hpp"

#include "harness/compare/compare_blocks.hpp"
#include "harness/compare/compare_sigma.hpp"
#include "harness/compare/compare_tensor.hpp"
#include "harness/compare/formats.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {
namespace {

TensorReport failed(std::string_view name, std::string reason, std::string detail) {
  TensorReport report;
  report.name = name;
  report.reason = std::move(reason);
  report.detail = std::move(detail);
  report.used_share = std::numeric_limits<double>::infinity();
  return report;
}

const Tensor& expected_tensor(OutputKind kind, const Semantics& semantics,
                              const std::map<std::string, Tensor>& expected) {
  const Shape wanted = shape_of(kind, semantics);
  const auto found = expected.find(std::string(name(kind)));
  const auto is_precise = [](Dtype dtype) { return dtype == Dtype::kF32 || dtype == Dtype::kF64; };
  if (found != expected.end() && found->second.shape() == wanted &&
      is_precise(found->second.dtype())) {
    return found->second;
  }
  const std::string got = found == expected.end()
                              ? "nothing"
                              : fmt::format("{} {}", name(found->second.dtype()),
                                            kda::to_string(found->second.shape()));
  throw Error(ErrorCode::kExpectedShape,
              fmt::format("expected {}: wanted f64 or f32 of shape {}, got {}", name(kind),
                          kda::to_string(wanted), got));
}

TensorReport judge(OutputKind kind, const JudgedCase& judged, const Tensor& expected,
                   const Tensor* got) {
  const Shape wanted = shape_of(kind, judged.semantics);
  if (got == nullptr) {
    return failed(name(kind), "missing",
                  "wanted shape " + kda::to_string(wanted) + ", got nothing");
  }
  if (!is_float(got->dtype())) {
    return failed(name(kind), "dtype_mismatch",
                  fmt::format("wanted a float type, got {}", name(got->dtype())));
  }
  if (got->shape() != wanted) {
    return failed(name(kind), "shape_mismatch",
                  fmt::format("wanted shape {}, got {}", kda::to_string(wanted),
                              kda::to_string(got->shape())));
  }
  return judge_tensor(kind, judged, expected, *got);
}

/// Whole-tensor groups of the heads taken together.
void judge_merged(TensorReport& report, const DeviationLimits& limits) {
  SigmaUse& use = *report.use;
  const std::optional<double> bias = use.sums.bias_share(limits);
  const double share = std::max(use.sums.rms_share(limits), bias.value_or(0));
  use.group.raise(use.sums.rms_share(limits), "all");
  if (bias) use.raise_bias(*bias, "all");
  if (share <= report.used_share) return;
  report.used_share = share;
  if (share <= 1) return;
  report.passed = false;
  report.reason = "over_bound";
  report.detail = fmt::format("all heads: RMS error of {:.3g} sigma, mean error of {:.3g} sigma",
                              use.sums.rms(), use.sums.ruled_mean());
}

/// NaN without a sign, which says nothing and which JSON does not keep.
void drop_nan_signs(TensorReport& report) {
  const auto drop = [](double& x) {
    if (std::isnan(x)) x = std::numeric_limits<double>::quiet_NaN();
  };
  drop(report.used_share);
  for (std::optional<Finding>* finding : {&report.worst, &report.first_bad}) {
    if (!*finding) continue;
    for (double* x : {&(*finding)->expected, &(*finding)->got, &(*finding)->bound}) drop(*x);
  }
  if (report.window) {
    std::ranges::for_each(report.window->expected, drop);
    std::ranges::for_each(report.window->got, drop);
  }
  if (!report.use) return;
  SigmaUse& use = *report.use;
  for (Share* share : {&use.element, &use.row, &use.group}) drop(share->share);
  if (use.bias) drop(use.bias->share);
  SigmaSums& sums = use.sums;
  for (double* x : {&sums.z2, &sums.signed_z, &sums.sigma2, &sums.exact2, &sums.ruled_z}) drop(*x);
}

void raise(Share& whole, const Share& part) { whole.raise(part.share, part.place); }

SigmaUse merged(SigmaUse whole, const SigmaUse& part) {
  raise(whole.element, part.element);
  raise(whole.row, part.row);
  raise(whole.group, part.group);
  if (part.bias) whole.raise_bias(part.bias->share, part.bias->place);
  whole.sums.merge(part.sums);
  return whole;
}

}  // namespace

CompareReport compare(const Semantics& semantics, const Standard& standard,
                      const std::map<std::string, Tensor>& got) {
  const CaseDeviations* deviations = standard.policy.deviations ? standard.deviations : nullptr;
  if (standard.policy.deviations && deviations == nullptr)
    throw Error(ErrorCode::kUsage, "policy derived: wanted deviations, got none");
  std::optional<KeyCounts> keys;
  if (deviations != nullptr) keys.emplace(semantics, deviations->sigma.keys);
  const JudgedCase judged{semantics, standard.policy, deviations, keys ? &*keys : nullptr,
                          standard.first_head};
  CompareReport report;
  report.policy = standard.policy.name;
  if (deviations != nullptr) report.formats = to_string(deviations->formats);
  for (const OutputKind kind : wanted_outputs(semantics)) {
    const auto found = got.find(std::string(name(kind)));
    report.tensors.push_back(judge(kind, judged,
                                   expected_tensor(kind, semantics, standard.expected),
                                   found == got.end() ? nullptr : &found->second));
  }
  for (const auto& [extra, tensor] : got) {
    if (report.find(extra) != nullptr || extra == name(OutputKind::kFinalState)) continue;
    report.tensors.push_back(failed(
        extra, "unexpected", "wanted no such tensor, got shape " + kda::to_string(tensor.shape())));
  }
  std::ranges::for_each(report.tensors, drop_nan_signs);
  return report;
}

CompareReport compare(const KdaCase& kda_case, const Semantics& semantics,
                      const std::map<std::string, Tensor>& expected,
                      const std::map<std::string, Tensor>& got, const Policy& policy) {
  Standard standard{.expected = expected, .policy = policy};
  std::optional<CaseDeviations> deviations;
  if (policy.deviations) {
    const Problem problem = kda_case.problem();
    const reference::Formats formats = formats_of({}, problem);
    deviations = {formats, reference::deviations(problem, semantics, formats)};
    standard.deviations = &*deviations;
  }
  return compare(semantics, standard, got);
}

void merge(CompareReport& whole, CompareReport part, const Policy& policy) {
  for (TensorReport& tensor : part.tensors) {
    const auto same = std::ranges::find(whole.tensors, tensor.name, &TensorReport::name);
    if (same == whole.tensors.end()) {
      whole.tensors.push_back(std::move(tensor));
      continue;
    }
    Metrics metrics = same->metrics;
    metrics.merge(tensor.metrics);
    TokenProfile tokens = same->tokens;
    tokens.merge(tensor.tokens);
    std::optional<SigmaUse> use = same->use;
    if (use && tensor.use) use = merged(*use, *tensor.use);
    std::optional<Finding> first_bad = same->first_bad ? same->first_bad : tensor.first_bad;
    const bool worse =
        same->passed != tensor.passed ? !tensor.passed : !(tensor.used_share <= same->used_share);
    if (worse) *same = std::move(tensor);
    same->metrics = metrics;
    same->tokens = std::move(tokens);
    same->use = use;
    same->first_bad = first_bad;
    if (use && policy.deviations) judge_merged(*same, *policy.deviations);
  }
  whole.policy = part.policy;
  whole.formats = part.formats;
}

}  // namespace kda::harness
