#pragma once

#include "reference/types/error.hpp"
#include "reference/types/problem.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kda {

/// One rule of a contract. `broken` says what was got, or nothing when the rule holds; it may rely
/// on every rule before it.
struct Rule {
  ErrorCode code;
  std::string_view when;  ///< what breaks it, for `kdacheck list contracts`
  std::optional<std::string> (*broken)(const Problem& problem);
};

/// The rules of an entry point, in the order in which they are checked.
[[nodiscard]] std::span<const Rule> rules(Contract contract) noexcept;

/// Accepts the problem and says what it means, or throws the first rule broken (Error, 1xx).
/// Reads shapes, dtypes, params and the few elements of cu_seqlens; touches no other data.
[[nodiscard]] Semantics check(Contract contract, const Problem& problem);

}  // namespace kda
