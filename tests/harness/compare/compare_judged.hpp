#pragma once

#include "harness/case/case_line.hpp"
#include "harness/compare/compare.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

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
  explicit Judged(const std::string& line)
      : made(make_case(parse_case_line(line))),
        kda_case(std::get<KdaCase>(made.inputs)),
        problem(kda_case.problem()),
        semantics(check(kda_case.contract, problem)),
        expected(tensors_of(reference::recurrent(problem, semantics))) {}

  [[nodiscard]] CompareReport report(const Tensors& got, std::string_view policy) const {
    return compare(kda_case, semantics, expected, got, find_policy(policy));
  }
  [[nodiscard]] TensorReport report(const Tensors& got, std::string_view policy,
                                    std::string_view tensor) const {
    const CompareReport all = report(got, policy);
    return *std::ranges::find(all.tensors, tensor, &TensorReport::name);
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
};

inline const Judged& ordinary() {
  static const Judged judged(
      "op=chunk_kda T=130 H=2 HV=4 K=32 V=32 initial_state=1 final_state=1 h=1 seed=5");
  return judged;
}

inline double get(const Tensor& tensor, std::int64_t i) { return load(tensor.view(), i); }

}  // namespace kda::harness
