#include "harness/compare/compare.hpp"

#include "harness/compare/compare_blocks.hpp"
#include "harness/compare/compare_tensor.hpp"

#include <algorithm>
#include <limits>
#include <span>
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
  if (found != expected.end() && found->second.shape() == wanted &&
      is_float(found->second.dtype())) {
    return found->second;
  }
  const std::string got = found == expected.end()
                              ? "nothing"
                              : fmt::format("{} {}", name(found->second.dtype()),
                                            kda::to_string(found->second.shape()));
  throw Error(ErrorCode::kExpectedShape,
              fmt::format("expected {}: wanted floats of shape {}, got {}", name(kind),
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

}  // namespace

bool CompareReport::passed() const { return std::ranges::all_of(tensors, &TensorReport::passed); }

bool CompareReport::trusted() const {
  return std::ranges::none_of(tensors, &TensorReport::zeros_would_pass);
}

const TensorReport* CompareReport::worst() const {
  const auto found = std::ranges::max_element(tensors, {}, [](const TensorReport& report) {
    return std::pair(!report.passed, report.used_share);
  });
  return found == tensors.end() ? nullptr : &*found;
}

CompareReport compare(const KdaCase& kda_case, const Semantics& semantics,
                      const std::map<std::string, Tensor>& expected,
                      const std::map<std::string, Tensor>& got, const Policy& policy) {
  const Problem problem = kda_case.problem();
  CaseTerms terms(problem, semantics);
  const JudgedCase judged{problem, semantics, policy, terms};
  CompareReport report;
  report.policy = policy.name;
  for (const OutputKind kind : {OutputKind::kO, OutputKind::kFinalState, OutputKind::kH}) {
    if (kind == OutputKind::kFinalState && !semantics.final_state) continue;
    if (kind == OutputKind::kH && !semantics.chunk_states) continue;
    const auto found = got.find(std::string(name(kind)));
    report.tensors.push_back(judge(kind, judged, expected_tensor(kind, semantics, expected),
                                   found == got.end() ? nullptr : &found->second));
  }
  for (const auto& [extra, tensor] : got) {
    const bool known =
        std::ranges::find(report.tensors, extra, &TensorReport::name) != report.tensors.end();
    if (known || extra == name(OutputKind::kFinalState)) continue;
    report.tensors.push_back(failed(
        extra, "unexpected", "wanted no such tensor, got shape " + kda::to_string(tensor.shape())));
  }
  return report;
}

CompareReport compare(const KdaCase& kda_case, const Semantics& semantics,
                      const std::map<std::string, Tensor>& expected, const Outputs& got,
                      const Policy& policy) {
  std::map<std::string, Tensor> tensors{{"o", got.o}};
  if (got.final_state) tensors.emplace("final_state", *got.final_state);
  if (got.h) tensors.emplace("h", *got.h);
  return compare(kda_case, semantics, expected, tensors, policy);
}

}  // namespace kda::harness
