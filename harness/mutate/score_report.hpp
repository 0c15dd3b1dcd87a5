#pragma once

#include "harness/mutate/score.hpp"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness::mutate {

/// Killed and total by class and policy, then survivors with their explanations.
[[nodiscard]] std::string to_text(const MutationScore& score);

/// Format "kdacheck-mutation", version 1: environment, counts, every mutant.
[[nodiscard]] nlohmann::json to_json(const MutationScore& score);

}  // namespace kda::harness::mutate
