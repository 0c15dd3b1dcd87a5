#pragma once

#include <nlohmann/json.hpp>

namespace kda::harness {

/// Machine, compiler and version, for reports.
[[nodiscard]] nlohmann::json environment();

}  // namespace kda::harness
