#pragma once

#include "cuda/output_view.hpp"
#include "cuda/recurrent_plan.hpp"
#include "cuda/runtime.hpp"
#include "reference/types/contract.hpp"
#include "reference/types/problem.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kda::cuda {

/// A call of the recurrent kernel: the contract's problem, and what only this interface has.
///
/// Tensors lie in device memory and may have any strides (A_log and dt_bias are dense; states have
/// dense rows); cu_seqlens and slots lie in host memory, since they are checked. States start at a
/// multiple of 16 bytes, other tensors at a multiple of their element.
///
/// The state is one of
///  - problem.initial_state -> final_state, [N,HV,K,V] ([N,HV,V,K] with state_v_first), each
///    optional, f32 or bf16 (both alike);
///  - pool, [slots,HV,K,V] or [slots,HV,V,K], f32 or bf16, updated in place. Sequence n has slot n,
///    or slots[n]; a slot of -1 leaves pool and output rows of the sequence untouched.
struct RecurrentArgs {
  Contract contract = Contract::kRecurrentKda;  ///< or kChunkKda, without chunk states
  Problem problem;
  OutputView o;  ///< [B,T,HV,V], dtype of v
  std::optional<OutputView> final_state;
  std::optional<OutputView> pool;
  std::optional<TensorView> slots;  ///< [N] i32 or i64, any stride
  std::byte* workspace = nullptr;   ///< at least plan.workspace_bytes, 16-byte aligned
  std::size_t workspace_bytes = 0;
};

/// Checks every rule that does not concern the workspace, and plans. Touches no device memory.
/// Throws the contract's codes in the contract's order, then kImplementationUnsupported (chunk
/// states), kShapeMismatch and kDtypeUnsupported (o), kInitialStateInvalid and kStateCountMismatch
/// (states, slots), kNullPointer, kMisalignedPointer, kSlotIndexInvalid, kSlotDuplicate.
[[nodiscard]] RecurrentPlan plan_recurrent(const RecurrentArgs& args);

/// Plans, checks the workspace (kNullPointer, kMisalignedPointer, kWorkspaceTooSmall) and launches.
/// Nothing is written before every check has passed. The returned plan owns host memory that the
/// stream may still read: keep it until the launch, or the graph it was captured in, is done with.
RecurrentPlan recurrent(const RecurrentArgs& args, Runtime& runtime);

/// Runs a problem in host memory on a device: copies in, calls `recurrent`, copies out.
[[nodiscard]] Outputs run_recurrent(Contract contract, const Problem& problem, Device& device);

/// The same on the CPU executor; adds to `counters` if given.
[[nodiscard]] Outputs run_recurrent_cpu(Contract contract, const Problem& problem,
                                        const simt::Options& options,
                                        simt::Counters* counters = nullptr);

/// Why the kernel does not serve a problem that its contract accepts; nothing when it does.
[[nodiscard]] std::optional<std::string> recurrent_unsupported(const Problem& problem);

}  // namespace kda::cuda
