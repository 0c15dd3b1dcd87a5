#pragma once

#include "harness/case/case_line.hpp"

#include <string>

namespace kda::harness {

/// What a KDA case costs by the model of cost_model.hpp: the prefill kernel where the case is one
/// of its, and the recurrent kernel. Several lines. No tensor is made, so any size will do. Throws
/// what the case's contract throws.
[[nodiscard]] std::string plan_text(const CaseLine& line);

}  // namespace kda::harness
