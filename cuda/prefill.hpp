#pragma once

#include "cuda/output_view.hpp"
#include "cuda/prefill_plan.hpp"
#include "cuda/runtime.hpp"
#include "reference/types/contract.hpp"
#include "reference/types/problem.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kda::cuda {

/// Tensors that a debug run writes beside the results (PrefillStages says what they hold), each
/// optional: dense f32 in device memory.
struct PrefillStageViews {
  float* log_decay = nullptr;
  float* A = nullptr;
  float* Q = nullptr;
  float* T = nullptr;
  float* U = nullptr;
};

/// A call of the prefill kernel: contract kda_prefill.
///
/// Tensors lie in device memory; cu_seqlens lies in host memory, since it is checked. q, k, v, g
/// and o have any strides but dense rows of 128 elements that start at multiples of 16 bytes. beta
/// has any strides. A_log, dt_bias, initial_state, final_state and h are dense.
///
/// Finite inputs only, but for g = -inf. Others spread to no other sequence and no other head; of
/// their own head they spoil the state from their chunk on, all outputs from their token on, and
/// those of up to 15 tokens before it (of the same 16 of its chunk).
struct PrefillArgs {
  Problem problem;
  OutputView o;                           ///< [B,T,HV,128], bf16
  std::optional<OutputView> final_state;  ///< [N,HV,128,128] f32; wanted with output_final_state
  std::optional<OutputView> h;  ///< [NT,HV,128,128] f32; wanted with return_intermediate_states
  PrefillStageViews stages;
  std::byte* workspace = nullptr;  ///< at least plan.workspace.bytes, 128-byte aligned
  std::size_t workspace_bytes = 0;
  PrefillOptions options;
};

/// Checks every rule that does not concern the workspace, and plans. Touches no device memory.
/// Throws the contract's codes in the contract's order, then kShapeMismatch and kDtypeUnsupported
/// (o, h, rows that are not dense), kInitialStateInvalid, kALogInvalid, kDtBiasInvalid,
/// kNullPointer, kMisalignedPointer.
[[nodiscard]] PrefillPlan plan_prefill(const PrefillArgs& args);

/// Plans, checks the workspace (kNullPointer, kMisalignedPointer, kWorkspaceTooSmall) and launches
/// two kernels a segment. Nothing is written before every check has passed. The returned plan owns
/// host memory that the stream may still read: keep it until the launches, or the graph they were
/// captured in, are done with.
PrefillPlan prefill(const PrefillArgs& args, Runtime& runtime);

/// Bytes of workspace for N sequences of T tokens with these options: grows with T up to a segment,
/// beyond it by 16 bytes a chunk.
[[nodiscard]] std::size_t prefill_workspace_bytes(std::int64_t N, std::int64_t T, std::int64_t HV,
                                                  const PrefillOptions& options = {});

/// What a debug run gives beside the results. Shapes as in PrefillStages.
struct PrefillTensors {
  Tensor log_decay;
  Tensor A;
  Tensor Q;
  Tensor T;
  Tensor U;
};

/// Runs a problem in host memory on a device: copies in, calls `prefill`, copies out. Fills
/// `stages` if given.
[[nodiscard]] Outputs run_prefill(const Problem& problem, const PrefillOptions& options,
                                  Device& device, PrefillTensors* stages = nullptr);

/// The same on the CPU executor; adds to `counters` if given.
[[nodiscard]] Outputs run_prefill_cpu(const Problem& problem, const PrefillOptions& options,
                                      const simt::Options& executor,
                                      simt::Counters* counters = nullptr,
                                      PrefillTensors* stages = nullptr);

}  // namespace kda::cuda
