#pragma once

#include "harness/implementation/implementation.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kda::harness {

/// An error that an implementation raised: a refusal with its code, which need not be one of ours.
struct Raised {
  std::string code;
  std::string message;
};

/// What came of a call: one of the two.
struct Outcome {
  std::optional<Answer> answer;
  std::optional<Raised> error;
  std::optional<StatedFormats> formats{};  ///< that the answer itself states
};

/// Calls the implementation `repeats` times (at least once) and adds the time of the first call to
/// `seconds`. Throws Fault when an input is not what it was (input_changed) or a repetition gives
/// other bits or another error (not_repeatable), besides what the implementation throws itself.
[[nodiscard]] Outcome call(const Implementation& implementation, const Case& test_case,
                           const KernelSettings& settings, std::int64_t repeats, double& seconds);

}  // namespace kda::harness
