#pragma once

#include "harness/case/case_line.hpp"
#include "harness/compare/compare.hpp"
#include "harness/compare/formats.hpp"
#include "harness/compare/trust.hpp"
#include "harness/run/case_answers.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace kda::harness {

using Tensors = std::map<std::string, Tensor>;

inline Tensors tensors_of(const Outputs& outputs) {
  Tensors tensors{{"o", outputs.o}};
  if (outputs.final_state) tensors.emplace("final_state", *outputs.final_state);
  if (outputs.h) tensors.emplace("h", *outputs.h);
  return tensors;
}

inline Tensor converted(const Tensor& from, Dtype dtype) {
  Tensor to(dtype, from.shape());
  for (std::int64_t i = 0; i < from.size(); ++i) to.store(i, load(from.view(), i));
  return to;
}

/// A case with its exact answer.
struct Judged {
  explicit Judged(const std::string& line) : Judged(make_case(parse_case_line(line))) {}
  explicit Judged(Case test_case)
      : made(std::move(test_case)),
        kda_case(std::get<KdaCase>(made.inputs)),
        problem(kda_case.problem()),
        semantics(check(kda_case.contract, problem)),
        expected(tensors_of(reference::recurrent(problem, semantics))) {}

  /// For an implementation that states `formats`.
  [[nodiscard]] Standard standard(std::string_view policy, const StatedFormats& stated = {}) const {
    Standard standard{.expected = expected, .policy = find_policy(policy)};
    if (!standard.policy.deviations) return standard;
    const reference::Formats formats = formats_of(stated, problem);
    auto known = std::ranges::find(deviations, formats, &CaseDeviations::formats);
    if (known == deviations.end())
      known = deviations.insert(known, deviations_of(kda_case, semantics, formats));
    standard.deviations = &*known;
    return standard;
  }
  [[nodiscard]] CompareReport report(const Tensors& got, std::string_view policy,
                                     const StatedFormats& stated = {}) const {
    return compare(semantics, standard(policy, stated), got);
  }
  [[nodiscard]] TensorReport report(const Tensors& got, std::string_view policy,
                                    std::string_view tensor) const {
    return *report(got, policy).find(tensor);
  }
  [[nodiscard]] std::optional<Doubt> doubt(std::string_view policy,
                                           const StatedFormats& stated = {}) const {
    Trust trust;
    trust.add(semantics, standard(policy, stated));
    return trust.doubt();
  }
  /// The best that a bf16 kernel with an f32 state can return.
  [[nodiscard]] Tensors rounded() const {
    Tensors tensors;
    for (const auto& [name, tensor] : expected) {
      tensors.emplace(name, converted(tensor, name == "o" ? problem.v.dtype : Dtype::kF32));
    }
    return tensors;
  }

  Case made;
  const KdaCase& kda_case;
  Problem problem;
  Semantics semantics;
  Tensors expected;
  mutable std::list<CaseDeviations> deviations;  ///< made when first asked for
};

inline const Judged& ordinary() {
  static const Judged judged(
      "op=chunk_kda T=130 H=2 HV=4 K=32 V=32 initial_state=1 final_state=1 h=1 seed=5");
  return judged;
}

inline double get(const Tensor& tensor, std::int64_t i) { return load(tensor.view(), i); }

}  // namespace kda::harness
