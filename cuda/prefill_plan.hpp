#pragma once

#include "cuda/kernels/prefill_workspace.hpp"
#include "cuda/prefill_params.hpp"
#include "cuda/runtime.hpp"
#include "reference/types/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kda::cuda {

/// "mixed", "split", "bf16".
[[nodiscard]] const char* name(PrefillPolicy policy) noexcept;

/// What a caller may choose. Only `policy` changes results; no choice of the others changes a bit.
struct PrefillOptions {
  PrefillPolicy policy = PrefillPolicy::kMixed;
  int v_columns = 0;  ///< of a block of the chain: 64, 32, or 0 for `multiprocessors`
  std::int64_t chunks_per_segment = 0;  ///< 0: so that a segment's workspace is about 720 MB
  int multiprocessors = 132;  ///< of the device; the chain takes narrow blocks to fill them
};

/// What a plan depends on.
struct PrefillExtents {
  std::int64_t HV = 0;
  std::span<const Sequence> sequences;
};

/// One pass: the chunks [first_chunk, first_chunk + chunks), counted over all sequences, through
/// both kernels. A sequence that a segment's end cuts goes on in the next one, through a state in
/// the workspace.
struct PrefillSegment {
  std::int64_t first_chunk = 0;
  std::int64_t chunks = 0;
  std::int64_t first_run = 0;
  std::int64_t runs = 0;
  LaunchShape factors;
  LaunchShape chain;
};

/// Offsets in the workspace, in bytes; multiples of 128.
struct PrefillWorkspace {
  std::size_t blobs = 0;
  std::size_t carries = 0;  ///< two of [HV,128,128] f32 when there is more than one segment
  std::size_t chunks = 0;   ///< table of ChunkEntry
  std::size_t runs = 0;     ///< table of RunEntry
  std::size_t bytes = 0;
};

/// How a call is launched.
struct PrefillPlan {
  PrefillPolicy policy = PrefillPolicy::kMixed;
  int v_columns = 64;
  std::int64_t HV = 0;
  std::vector<ChunkEntry> chunks;
  std::vector<RunEntry> runs;
  std::vector<PrefillSegment> segments;
  PrefillWorkspace workspace;
  PrefillParams params{};  ///< but for what differs between segments

  /// One line: policy, segments, grids, workspace.
  [[nodiscard]] std::string text() const;
};

/// Pure. Throws kShapeMismatch for more blocks than a grid can hold, for more chunks than a table
/// can (2^31), or for a workspace of 2^63 bytes or more.
[[nodiscard]] PrefillPlan plan_prefill(const PrefillExtents& extents,
                                       const PrefillOptions& options = {});

/// Bytes of a chunk and head in the workspace.
[[nodiscard]] std::size_t prefill_blob_bytes(PrefillPolicy policy) noexcept;

[[nodiscard]] KernelForms prefill_factors_forms(PrefillPolicy policy);
[[nodiscard]] KernelForms prefill_chain_forms(PrefillPolicy policy, int v_columns);
[[nodiscard]] std::size_t prefill_factors_shared_bytes(PrefillPolicy policy);
[[nodiscard]] std::size_t prefill_chain_shared_bytes(PrefillPolicy policy, int v_columns);

/// Of the device code; nullptr when it was not compiled. Indices as in prefill_variants.hpp.
[[nodiscard]] const void* prefill_factors_symbol(std::size_t index);
[[nodiscard]] const void* prefill_chain_symbol(std::size_t index);

}  // namespace kda::cuda
