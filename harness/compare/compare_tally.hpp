#pragma once

#include "harness/compare/compare.hpp"
#include "harness/compare/compare_blocks.hpp"

#include <string>

namespace kda::harness {

/// Collects the report on one tensor: elements first, then whatever else is tested.
class Tally {
 public:
  Tally(OutputKind kind, Dtype got);

  /// Element `i` of the block, row-major, and what |got - expected| may be. Returns error / bound.
  double element(const Block& block, std::int64_t i, double expected, double got, double bound);

  /// Notes a test by its share of the limit; `describe` is called for the largest one over 1.
  template <class Describe>
  void test(double share, const Describe& describe) {
    if (!(share <= 1) && (report_.detail.empty() || share > report_.used_share)) {
      report_.detail = describe();
    }
    note(share);
  }

  /// The elements count as a test, too.
  void test_elements();

  /// False as soon as some test has failed for sure.
  [[nodiscard]] bool may_pass() const;

  [[nodiscard]] TensorReport& report() { return report_; }
  [[nodiscard]] TensorReport conclude();

 private:
  void note(double share);

  OutputKind kind_;
  Dtype got_;
  TensorReport report_;
  double worst_share_ = 0;
};

/// "n=0 hv=3", with "chunk=2 " before it for a block of h.
[[nodiscard]] std::string name_of(const Block& block);

}  // namespace kda::harness
