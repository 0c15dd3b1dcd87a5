#pragma once

#include "harness/mutate/suite.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness::mutate {

/// How large a mutant's effect is, measured.
enum class Class : std::uint8_t {
  kGross,     ///< more than 10 element limits off somewhere in the suite, or not finite
  kSubtle,    ///< 1 to 10
  kWithin,    ///< below 1
  kProtocol,  ///< values apart: refusals, shapes, changed inputs, unsteady answers, reports
};
inline constexpr std::uint8_t kClassCount = 4;

/// "gross", "subtle", "within", "protocol".
[[nodiscard]] std::string_view name(Class effect_class) noexcept;

/// What became of one mutant.
struct MutantScore {
  std::string name;
  std::string what;
  std::string group;  ///< "values", "protocol", or the kernel the fault is injected into
  Class effect_class = Class::kProtocol;
  /// Largest error over element limit in the suite: for values of the run that is f64 throughout.
  double effect = 0;
  bool alive = false;  ///< it changes a result somewhere, or the executor reports it
  /// By policy: the first case that sees it, the verdict and its code; absent = it survives.
  std::map<std::string, std::string> killed;
  std::string explanation;  ///< why it may survive, from the list of explained survivors
  bool harmless = false;    ///< declared to change nothing; `explanation` says why
  std::string moved;        ///< declared so for another line of source: the one that stands there

  [[nodiscard]] bool survives(const std::string& policy) const { return !killed.contains(policy); }
};

struct MutationScore {
  std::vector<std::string> policies;  ///< the one that counts first
  std::vector<MutantScore> mutants;
  /// "HONEST on CASE: POLICY: VERDICT": where an honest form does not pass, so that the case is not
  /// used for its mutants under that policy.
  std::vector<std::string> unfit;
  std::int64_t cases = 0;
  double seconds = 0;

  /// Mutants that count: alive ones.
  [[nodiscard]] std::int64_t total(std::optional<Class> of = {}) const;
  [[nodiscard]] std::int64_t killed(const std::string& policy, std::optional<Class> of = {}) const;
  /// Why the score is not good enough, one line each; empty = it is.
  [[nodiscard]] std::vector<std::string> complaints() const;
};

struct ScoreOptions {
  std::string policy;             ///< that counts; empty = the default one
  std::filesystem::path kernels;  ///< sources of the kernels, to see what is declared harmless
  std::string filter;             ///< glob on mutants' names; empty = all
  std::int64_t jobs = 2;
};

/// Mutants done, of how many, the name of the last.
using MutationProgress = std::function<void(std::size_t, std::size_t, const std::string&)>;

/// Runs every mutant on the suite until something kills it, under each policy.
[[nodiscard]] MutationScore score_mutants(const std::vector<SuiteCase>& suite,
                                          const ScoreOptions& options,
                                          const MutationProgress& progress);

/// Name of a mutant -> why no test can be asked to see it.
[[nodiscard]] const std::map<std::string, std::string>& explained_survivors();

/// A fault injected into a kernel that no input and no schedule can show. One that has an effect
/// all the same fails the run.
struct HarmlessMutant {
  std::string name;  ///< of the mutant, with its number in the file
  std::string text;  ///< on the site's line, so that the number goes on meaning it
  std::string why;
};
[[nodiscard]] const std::vector<HarmlessMutant>& harmless_mutants();

}  // namespace kda::harness::mutate
