#pragma once

#include "harness/compare/compare_tally.hpp"
#include "harness/compare/compare_tensor.hpp"

#include <vector>

namespace kda::harness {

/// The deviations of one tensor.
[[nodiscard]] const Tensor* sigma_of(const CaseDeviations& deviations, OutputKind kind);

/// Deviations as results are held against them: with the rounding of expected values that are
/// stored in `expected`, and with the error of the expected values themselves where formats are
/// f64.
[[nodiscard]] double widened(double sigma, double exact, Dtype expected,
                             const reference::Formats& formats);

/// Policy `derived` on one tensor, block by block: every element, rows (of states also columns),
/// groups and their mean.
class SigmaJudge {
 public:
  SigmaJudge(OutputKind kind, const JudgedCase& judged, Dtype expected);

  void block(const Block& block, Tally& tally);
  void whole(Tally& tally);

 private:
  struct Values;
  void elements(const Values& values, Tally& tally);
  void lines(const Values& values, Tally& tally);
  void groups(const Values& values, Tally& tally);
  void group(const SigmaSums& sums, const std::string& where, Tally& tally);
  [[nodiscard]] SigmaSums sums(const Values& values, std::int64_t first_row,
                               std::int64_t last_row) const;

  OutputKind kind_;
  const JudgedCase& judged_;
  const DeviationLimits& limits_;
  const reference::Formats& formats_;
  Dtype expected_;
  SigmaUse use_;
  bool tests_bias_;
};

}  // namespace kda::harness
