#pragma once

#include "harness/case/named_outputs.hpp"
#include "harness/implementation/implementation.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kda::harness {

/// Name of the reference that answers for this case when `judged` is under judgement: never
/// `judged` itself; the fast one where the token recurrence would take minutes.
[[nodiscard]] std::string_view oracle_for(const KdaCase& kda_case, std::string_view judged);

/// What `oracle` says: tensors, numbers, or the contract's refusal.
[[nodiscard]] Expected expected_from(const Case& test_case, std::string_view oracle);

/// The same call with value head `hv` alone (and its query/key head): heads do not interact, so
/// large cases can be computed and compared head by head in little memory.
[[nodiscard]] KdaCase take_head(const KdaCase& kda_case, std::int64_t hv);

/// Value head `hv` alone of the tensors o [B,T,HV,V], final_state and h [.,HV,.,.].
[[nodiscard]] std::map<std::string, Tensor> take_head(const std::map<std::string, Tensor>& outputs,
                                                      std::int64_t hv);

/// True when the f64 outputs of the whole case would be too large to hold at once.
[[nodiscard]] bool judged_by_head(const Semantics& semantics);

}  // namespace kda::harness
