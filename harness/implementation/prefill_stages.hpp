#pragma once

#include "cuda/prefill.hpp"
#include "harness/case/case.hpp"
#include "harness/implementation/kernel_settings.hpp"

#include <optional>
#include <string>

namespace kda::harness {

/// One line about the first intermediate tensor of a prefill that is not what it should be, by
/// chunk and then in the order in which the kernel makes them: the state before the chunk, log
/// decays, A, Q, T (against the inverse of the kernel's own A) and U. Nothing
/// when all are within what 16-bit operands explain. `outputs` must have h.
[[nodiscard]] std::optional<std::string> first_wrong_stage(const Problem& problem,
                                                           const Semantics& semantics,
                                                           const cuda::PrefillTensors& stages,
                                                           const Outputs& outputs);

/// Runs the case again on the executor, with its stages written out, and says where it first goes
/// wrong; or why it cannot. For the report of a case that failed.
[[nodiscard]] std::string diagnose_prefill(const Case& test_case, cuda::PrefillPolicy policy);

}  // namespace kda::harness
