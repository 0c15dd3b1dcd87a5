#pragma once

#include "tests/reference/kda_inputs.hpp"

#include <string>
#include <vector>

namespace kda::tests {

struct NamedCase {
  std::string name;
  KdaInputs inputs;
};

/// Every option of KDA at least once, and the inputs that break careless arithmetic: small enough
/// for long double.
[[nodiscard]] std::vector<NamedCase> option_cases();

/// Gates from 0 to -inf, keys from random to identical, write strengths up to 2, ragged tails.
[[nodiscard]] std::vector<NamedCase> hard_cases();

}  // namespace kda::tests
