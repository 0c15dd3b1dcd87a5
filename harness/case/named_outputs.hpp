#pragma once

#include "reference/types/problem.hpp"

#include <map>
#include <string>

namespace kda::harness {

/// The tensors o, final_state, h of an answer, by name.
[[nodiscard]] std::map<std::string, Tensor> by_name(Outputs outputs);

/// The answer made of tensors by name; "o" must be among them.
[[nodiscard]] Outputs outputs_of(std::map<std::string, Tensor> tensors);

}  // namespace kda::harness
