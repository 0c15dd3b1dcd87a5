#pragma once

#include "harness/case/case.hpp"
#include "harness/compare/metrics.hpp"
#include "harness/compare/policy.hpp"
#include "harness/compare/token_profile.hpp"
#include "harness/compare/window.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

/// One element with both values.
struct Finding {
  Place place;
  double expected = 0;
  double got = 0;
  double bound = 0;  ///< of |got - expected|; under fla, which has none per element, 7 * 0.005 RMS
};

/// The verdict on one tensor.
struct TensorReport {
  std::string name;  ///< "o", "final_state", "h"
  bool passed = false;
  /// Why not, empty when passed: "missing", "unexpected", "shape_mismatch", "dtype_mismatch" (not a
  /// float type), "non_finite", "over_bound".
  std::string reason;
  std::string detail;     ///< one line: the test that failed, wanted and got; empty when passed
  double used_share = 0;  ///< largest error / bound of all tests; > 1 fails; NaN or inf = no number
  /// A tensor of zeros would pass too, because the tolerance is larger than the values, or because
  /// every expected `o` is 0: the comparison proves nothing, whatever `passed` says. States that
  /// are expected to be all zero (h of one chunk) do not count.
  bool zeros_would_pass = false;
  Metrics metrics;
  std::optional<Dtype> dtype;        ///< of the result
  std::optional<Finding> worst;      ///< largest error / bound per element, else largest error
  std::optional<Finding> first_bad;  ///< in the order sequence (h: chunk), head, row, column
  std::optional<Window> window;      ///< around `worst`
  TokenProfile tokens;               ///< of `o`: error / bound against token index
};

/// The verdict on one result.
struct CompareReport {
  std::string policy;
  std::vector<TensorReport> tensors;  ///< o, final_state, h: those asked for, and unexpected ones

  [[nodiscard]] bool passed() const;
  /// No tensor with zeros_would_pass.
  [[nodiscard]] bool trusted() const;
  /// The report with the largest used_share among the failed ones, or of all; nullptr if empty.
  [[nodiscard]] const TensorReport* worst() const;
};

/// Judges a result against the expected tensors "o", "final_state", "h" (f64, or f32 whose own
/// rounding is then allowed for). `semantics` is what `check` made of `kda_case`; it says which
/// tensors are wanted and which rows of `o` belong to a sequence: other rows are not compared. An
/// extra final_state is ignored, an extra h is "unexpected".
/// Throws kExpectedShape when `expected` lacks a tensor that is wanted or has another shape.
[[nodiscard]] CompareReport compare(const KdaCase& kda_case, const Semantics& semantics,
                                    const std::map<std::string, Tensor>& expected,
                                    const Outputs& got, const Policy& policy);

/// The same for a result read from a file or from a program, by name.
[[nodiscard]] CompareReport compare(const KdaCase& kda_case, const Semantics& semantics,
                                    const std::map<std::string, Tensor>& expected,
                                    const std::map<std::string, Tensor>& got, const Policy& policy);

/// Several lines: the verdict, metrics, worst place and window of each tensor; ends with a newline.
[[nodiscard]] std::string to_text(const TensorReport& report);
[[nodiscard]] std::string to_text(const CompareReport& report);

/// {policy, passed, trusted, tensors: [...]}; numbers that are not finite become strings.
[[nodiscard]] nlohmann::json to_json(const CompareReport& report);

}  // namespace kda::harness
