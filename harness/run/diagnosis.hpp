#pragma once

#include "harness/case/case.hpp"
#include "harness/compare/compare.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kda::harness {

/// A result that failed, and what it was held against.
struct FailedResult {
  /// State elements times tokens beyond which nothing is computed again to find a fault.
  static constexpr std::int64_t kMostWork = 50'000'000;

  const KdaCase& kda_case;
  const Semantics& semantics;
  const Standard& standard;
  const std::map<std::string, Tensor>& got;
};

/// A fault that would explain the result.
struct Suspect {
  std::string fault;  ///< "final_state is transposed"
  double left = 0;    ///< RMS of the error that it does not explain, over the RMS of the error
};

/// One source of the variance of an element: part of its bound.
struct BoundTerm {
  std::string source;  ///< "operands", "gate", ... (reference::ErrorSource)
  double share = 0;    ///< of the variance
};

/// Where the error is and what it looks like.
struct Diagnosis {
  std::vector<std::string> pattern;  ///< lines: which tokens, heads, chunks, columns are wrong
  std::vector<Suspect> suspects;     ///< that explain nine tenths of the error, the best first
  std::vector<BoundTerm> terms;      ///< four largest of the worst element (policy derived)
  std::string plot;                  ///< error of `o` against the token's index; may be empty
};

/// Of tensors that have the right shape; others are left out. `worst` is where the error is
/// largest. Runs the reference on changed copies of the case, unless it is large.
[[nodiscard]] Diagnosis diagnose(const FailedResult& failed, const std::optional<Place>& worst);

/// What the bound of an element is made of, the largest first, at most four. Computes the
/// deviations of its head once for each source; empty without deviations, and for large cases.
[[nodiscard]] std::vector<BoundTerm> bound_terms(const FailedResult& failed, const Place& place);

/// Faults in what was stored: shifted, rotated, transposed, scaled copies of the exact tensor.
void suspect_copies(const FailedResult& failed, std::vector<Suspect>& suspects);

/// Faults in what was computed: an option that was ignored, a state that was not reset, ...
void suspect_variants(const FailedResult& failed, std::vector<Suspect>& suspects);

/// Error / limit (policy derived) or error / largest error (others) of each element of a tensor.
[[nodiscard]] std::vector<double> error_sizes(OutputKind kind, const FailedResult& failed);

/// The tensor of the result when it has the right shape and type; nullptr otherwise.
[[nodiscard]] const Tensor* comparable(OutputKind kind, const FailedResult& failed);

[[nodiscard]] std::string to_text(const Diagnosis& diagnosis);

}  // namespace kda::harness
