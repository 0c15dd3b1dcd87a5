#pragma once

#include "harness/case/case.hpp"
#include "harness/compare/metrics.hpp"
#include "harness/compare/policy.hpp"
#include "harness/compare/sigma_use.hpp"
#include "harness/compare/token_profile.hpp"
#include "harness/compare/window.hpp"
#include "reference/variance.hpp"

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
  Metrics metrics;
  std::optional<Dtype> dtype;        ///< of the result
  std::optional<Finding> worst;      ///< largest error / bound per element, else largest error
  std::optional<Finding> first_bad;  ///< in the order sequence (h: chunk), head, row, column
  std::optional<Window> window;      ///< around `worst`
  TokenProfile tokens;               ///< of `o`: error / bound against token index
  std::optional<double> peer_ratio;  ///< RMS error / that of the peer of the same precision
  std::optional<SigmaUse> use;       ///< policy `derived`: the shares of its limits
};

/// The verdict on one result.
struct CompareReport {
  std::string policy;
  std::string formats;                ///< that the bound is for; empty unless policy `derived`
  std::vector<TensorReport> tensors;  ///< o, final_state, h: those asked for, and unexpected ones

  [[nodiscard]] bool passed() const;
  /// The report with the largest used_share among the failed ones, or of all; nullptr if empty.
  [[nodiscard]] const TensorReport* worst() const;
  /// nullptr when there is none of this name.
  [[nodiscard]] const TensorReport* find(std::string_view tensor) const;
};

/// Deviations of a case, and the formats that they are for.
struct CaseDeviations {
  reference::Formats formats;
  reference::Deviations sigma;
};

/// What a result is judged against.
struct Standard {
  const std::map<std::string, Tensor>& expected;
  const Policy& policy;
  const CaseDeviations* deviations = nullptr;  ///< needed by policies with `deviations`
  std::int64_t first_head =
      0;  ///< where the case is part of a larger one; added to heads in places
};

/// Judges a result against the expected tensors "o", "final_state", "h" (f64, or f32 whose own
/// rounding is then allowed for). `semantics` is what `check` made of `kda_case`; it says which
/// tensors are wanted and which rows of `o` belong to a sequence: other rows are not compared. An
/// extra final_state is ignored, an extra h is "unexpected".
/// Throws kExpectedShape when `expected` lacks a tensor that is wanted or has another shape.
[[nodiscard]] CompareReport compare(const Semantics& semantics, const Standard& standard,
                                    const std::map<std::string, Tensor>& got);

/// The same for an implementation that states no formats: makes the deviations where `policy` needs
/// them.
[[nodiscard]] CompareReport compare(const KdaCase& kda_case, const Semantics& semantics,
                                    const std::map<std::string, Tensor>& expected,
                                    const std::map<std::string, Tensor>& got, const Policy& policy);

/// Adds the report on one more head of the same case to that of the heads before: as if they had
/// been judged together, except for bounds of fla and exact, which stay those of each head.
void merge(CompareReport& whole, CompareReport part, const Policy& policy);

/// Several lines: the verdict, metrics, worst place and window of each tensor; ends with a newline.
[[nodiscard]] std::string to_text(const TensorReport& report);
[[nodiscard]] std::string to_text(const CompareReport& report);

/// {policy, passed, tensors: [...]}; numbers that are not finite become strings.
[[nodiscard]] nlohmann::json to_json(const CompareReport& report);

/// The reports that `tensors` of to_json was made of: the same text, the same JSON. What token
/// profiles had beyond three digits is lost. Throws nlohmann::json::exception for other JSON,
/// kReportUnknown for words that to_json does not write.
[[nodiscard]] std::vector<TensorReport> read_tensor_reports(const nlohmann::json& tensors);

}  // namespace kda::harness
