#pragma once

#include "harness/base/verdict.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace kda::harness {

/// What an implementation did instead of answering or refusing: it crashed, hung, left no result,
/// or did something to its inputs or to memory that is not its own. `what()` is one line.
class Fault final : public std::runtime_error {
 public:
  Fault(Verdict verdict, std::string code, const std::string& message, std::string output = {})
      : std::runtime_error(message),
        verdict_(verdict),
        code_(std::move(code)),
        output_(std::move(output)) {}

  [[nodiscard]] Verdict verdict() const noexcept { return verdict_; }
  /// Stable: "signal", "exit_status", "timed_out", "result_missing", "input_changed", ...
  [[nodiscard]] const std::string& code() const noexcept { return code_; }
  /// The end of what its process printed; may be several lines, or empty.
  [[nodiscard]] const std::string& output() const noexcept { return output_; }

 private:
  Verdict verdict_;
  std::string code_;
  std::string output_;
};

/// A refusal with a code that need not be one of this program's. `what()` is the text.
class Refusal final : public std::runtime_error {
 public:
  Refusal(std::string code, const std::string& message)
      : std::runtime_error(message), code_(std::move(code)) {}

  [[nodiscard]] const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

}  // namespace kda::harness
