#pragma once

#include "harness/case/case.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace kda::harness {

/// One step towards the plainest call: an option at its default, or plainer numbers.
struct Simplification {
  std::string_view name;
  /// The simpler call, or nothing when there is nothing to simplify.
  std::optional<KdaCase> (*apply)(const KdaCase&);
};

/// Options first, then numbers.
[[nodiscard]] std::span<const Simplification> simplifications();

}  // namespace kda::harness
