#pragma once

#include "reference/fast.hpp"
#include "tests/reference/kda_inputs.hpp"
#include "tests/reference/z_scores.hpp"

namespace kda::tests {

/// A call with its exact answer, for which results are judged. Keeps views of the inputs.
struct Judged {
  Problem problem;
  Semantics semantics;
  Outputs exact;

  explicit Judged(const KdaInputs& inputs)
      : problem(inputs.problem()),
        semantics(inputs.semantics()),
        exact(reference::fast(problem, semantics)) {}

  /// Of a kernel that states these formats.
  [[nodiscard]] ZReport judge(const Outputs& got, const reference::Formats& formats) const {
    return z_scores(got, exact, reference::deviations(problem, semantics, formats), semantics);
  }
};

}  // namespace kda::tests
