#pragma once

#include "harness/case/case.hpp"
#include "harness/compare/formats.hpp"
#include "harness/implementation/kernel_settings.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kda::harness {

/// What an implementation answers to a case; an Error thrown instead is a refusal with its code.
struct FitAnswer {
  std::optional<double> a;  ///< corrected coefficients
  std::optional<double> b;
  std::optional<double> c;
  std::optional<double> target_latency;
  std::optional<std::string> warning;
  std::optional<std::string> error;  ///< code name; raw coefficients may stand beside it
  std::optional<double> raw_a;
  std::optional<double> raw_b;
  std::optional<double> raw_c;
};

using PredictAnswer = PredictExpected;
using Answer = std::variant<Outputs, FitAnswer, PredictAnswer>;

/// An answer that says by itself which formats made it.
struct StatedAnswer {
  Answer answer;
  std::optional<StatedFormats> formats;
};

/// Something that can be judged: a reference, a peer, a kernel, somebody's program.
struct Implementation {
  std::string name;         ///< as --impl takes it
  std::string description;  ///< one line for `kdacheck list impls`
  std::vector<Op> ops;      ///< that it serves
  /// A limit of its own: nothing when it serves this case of its ops, else why not. May be empty.
  std::function<std::optional<std::string>(const Case&)> limit;
  /// The answer, or an Error: a refusal with its code. Called from several threads at once.
  std::function<Answer(const Case&, const KernelSettings&)> run;
  /// May be run one value head at a time, so that large cases need little memory.
  bool by_head = false;
  /// Only judged when --impl names it: a variant for comparison.
  bool on_request = false;
  /// One line that narrows down why a result of this case is wrong. May be empty.
  std::function<std::string(const Case&)> diagnose{};
  /// Where it rounds to what: makes its bound. The rest follows from the case (formats.hpp).
  StatedFormats formats{};
  /// As `run`, where answers may state formats of their own, in place of `formats`. May be empty.
  std::function<StatedAnswer(const Case&, const KernelSettings&)> run_stating{};
};

/// Nothing when the implementation serves the case, else why not: another op, a limit of its own,
/// or expected values that it made itself (no implementation is judged against its own).
[[nodiscard]] std::optional<std::string> unsupported(const Implementation& implementation,
                                                     const Case& test_case);

/// `oracle` of cases whose expected values this program's implementation `name` made.
[[nodiscard]] std::string oracle_name(std::string_view name);

/// Every implementation built into this program.
[[nodiscard]] std::span<const Implementation> all_implementations();

/// Throws kImplementationUnknown, naming the known ones.
[[nodiscard]] const Implementation& find_implementation(std::string_view name);

}  // namespace kda::harness
