#pragma once

#include "cuda/simt/mutation.hpp"
#include "harness/compare/compare.hpp"
#include "harness/mutate/mutant.hpp"
#include "harness/mutate/score.hpp"

#include <optional>
#include <string>
#include <vector>

// How one mutant is measured and judged.

namespace kda::harness::mutate {

/// Expected values and honest results of the suite, computed once.
class Bench {
 public:
  /// Policies: the one that counts first; "" = the default one.
  Bench(const std::vector<SuiteCase>& suite, std::vector<std::string> policies);

  [[nodiscard]] const std::vector<SuiteCase>& suite() const { return suite_; }
  [[nodiscard]] const std::vector<std::string>& policies() const { return policies_; }

  /// A mutant of values: its effect in f64, then who kills it.
  [[nodiscard]] MutantScore score(const Mutant& mutant) const;
  /// An implementation that breaks the protocol.
  [[nodiscard]] MutantScore score(const Implementation& faulty) const;

  /// "CASE: CODE" of the first case on which a verdict of this policy is not a pass, or a law is
  /// broken, though the implementation called `honest` passes there. `cases` in the order to try.
  [[nodiscard]] std::optional<std::string> killer(const Implementation& faulty,
                                                  const std::string& honest,
                                                  const std::string& policy,
                                                  const std::vector<std::size_t>& cases,
                                                  const KernelSettings& settings) const;

  /// Judges an implementation without a mistake on some cases; where it does not pass, nothing is
  /// held against its mutants.
  void admit(const Implementation& honest, const std::vector<std::size_t>& cases,
             const KernelSettings& settings);

  /// Honest forms that do not pass somewhere.
  [[nodiscard]] const std::vector<std::string>& unfit() const { return unfit_; }

 private:
  [[nodiscard]] bool fit(const std::string& honest, std::size_t i, const std::string& rule) const;
  [[nodiscard]] std::vector<std::size_t> all_cases() const;
  void measure(const Mutant& mutant, MutantScore& score, std::vector<double>& effects) const;

  const std::vector<SuiteCase>& suite_;
  std::vector<std::string> policies_;
  std::vector<std::optional<Outputs>> tokens_;  ///< honest f64 results, where the contract accepts
  std::vector<std::optional<Outputs>> chunks_;
  std::vector<std::string> unfit_;  ///< "HONEST on CASE: RULE: REASON"
};

/// Largest |error| / element bound of a report; infinite where a tensor is not comparable.
[[nodiscard]] double element_share(const CompareReport& report);

[[nodiscard]] Class class_of(double effect);

/// The fault of a kernel that the executor injects, and the kernel it was found in.
struct KernelMutant {
  std::string name;  ///< "KERNEL: drop block barrier 2 of recurrent_kernel.hpp"
  cuda::simt::Mutation mutation;
  const Implementation* kernel = nullptr;
};

/// Every fault that can be injected into the implementation's kernels on the suite's `kernels`
/// cases.
[[nodiscard]] std::vector<KernelMutant> kernel_mutants(Bench& bench, const Implementation& kernel);
[[nodiscard]] MutantScore score(const Bench& bench, const KernelMutant& mutant);

}  // namespace kda::harness::mutate
