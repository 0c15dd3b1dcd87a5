#include "cuda/prefill_plan.hpp"

#include "reference/types/error.hpp"

#include <algorithm>
#include <limits>

namespace kda::cuda {
namespace {

/// Blobs of a segment by default: 8,192 (719 MB mixed), a pass of 8,192 tokens and 64 heads.
constexpr std::int64_t kBlobsPerSegment = 8192;
constexpr std::int64_t kStateBytes = std::int64_t{kPrefillDim} * kPrefillDim * 4;

std::size_t round_up(std::size_t bytes) { return (bytes + 127) / 128 * 128; }

std::string text_of(const simt::Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

[[noreturn]] void refuse(const std::string& field, const std::string& wanted,
                         const std::string& got) {
  throw Error(ErrorCode::kShapeMismatch, field + ": wanted " + wanted + ", got " + got);
}

LaunchShape shape_of(std::int64_t blocks, unsigned threads, std::size_t shared_bytes) {
  constexpr std::int64_t kMost = std::int64_t{simt::kMaxGridX} * simt::kMaxGridYz;
  if (blocks > kMost) refuse("blocks", "at most " + std::to_string(kMost), std::to_string(blocks));
  const std::int64_t x = std::min<std::int64_t>(blocks, simt::kMaxGridX);
  const std::int64_t y = (blocks + x - 1) / x;
  LaunchShape shape;
  shape.grid = {static_cast<unsigned>(x), static_cast<unsigned>(y), 1};
  shape.block = {threads, 1, 1};
  shape.shared_bytes = shared_bytes;
  return shape;
}

/// Every chunk of every sequence, in order.
std::vector<ChunkEntry> chunk_table(const PrefillExtents& e) {
  std::vector<ChunkEntry> table;
  for (const Sequence& s : e.sequences) {
    for (std::int64_t t = s.begin; t < s.end; t += kPrefillChunk) {
      const auto rows = static_cast<std::int32_t>(std::min<std::int64_t>(kPrefillChunk, s.end - t));
      table.push_back({t, static_cast<std::int32_t>(s.b), rows});
    }
  }
  return table;
}

std::int64_t count_chunks(const PrefillExtents& e) {
  std::int64_t chunks = 0;
  for (const Sequence& s : e.sequences) {
    chunks += (s.length() + kPrefillChunk - 1) / kPrefillChunk;
  }
  if (chunks > std::numeric_limits<std::int32_t>::max()) {
    refuse("chunks of 64 tokens", "at most 2147483647", std::to_string(chunks));
  }
  return chunks;
}

/// Segments of as equal a size as may be.
std::int64_t segment_chunks(std::int64_t chunks, std::int64_t HV, const PrefillOptions& options) {
  std::int64_t most = options.chunks_per_segment;
  if (most <= 0) most = std::max<std::int64_t>(16, kBlobsPerSegment / HV);
  const std::int64_t segments = (chunks + most - 1) / most;
  return (chunks + segments - 1) / segments;
}

/// The parts of sequences that lie in each segment.
void cut_runs(PrefillPlan& plan, const PrefillExtents& e) {
  std::size_t n = 0;
  std::int64_t sequence_first = 0;  // chunk
  for (PrefillSegment& segment : plan.segments) {
    const std::int64_t end = segment.first_chunk + segment.chunks;
    segment.first_run = static_cast<std::int64_t>(plan.runs.size());
    for (std::int64_t chunk = segment.first_chunk; chunk < end;) {
      const std::int64_t sequence_end =
          sequence_first + (e.sequences[n].length() + kPrefillChunk - 1) / kPrefillChunk;
      const std::int64_t run_end = std::min(end, sequence_end);
      plan.runs.push_back({chunk, static_cast<std::int32_t>(run_end - chunk),
                           static_cast<std::int32_t>(n), chunk > sequence_first ? 1 : 0,
                           run_end < sequence_end ? 1 : 0, 0});
      chunk = run_end;
      if (run_end == sequence_end) {
        sequence_first = sequence_end;
        ++n;
      }
    }
    segment.runs = static_cast<std::int64_t>(plan.runs.size()) - segment.first_run;
  }
}

/// Narrow blocks where twice as many still have a multiprocessor each: they read every blob twice
/// as often.
int chain_columns(const PrefillPlan& plan, const PrefillOptions& options) {
  if (options.v_columns != 0) return options.v_columns;
  std::int64_t runs = 0;
  for (const PrefillSegment& segment : plan.segments) runs = std::max(runs, segment.runs);
  const std::int64_t rows = options.multiprocessors / (kPrefillDim / 32);  // of narrow blocks
  return runs <= rows / plan.HV ? 32 : 64;
}

void place_workspace(PrefillPlan& plan) {
  std::int64_t most = 0;
  for (const PrefillSegment& segment : plan.segments) most = std::max(most, segment.chunks);
  std::int64_t blobs = 0;
  if (__builtin_mul_overflow(most, plan.HV, &blobs) ||
      __builtin_mul_overflow(blobs, static_cast<std::int64_t>(prefill_blob_bytes(plan.policy)),
                             &blobs)) {
    refuse("workspace", "less than 2^63 bytes",
           std::to_string(most) + " chunks of " + std::to_string(plan.HV) + " heads");
  }
  PrefillWorkspace& w = plan.workspace;
  w.carries = static_cast<std::size_t>(blobs);
  const std::int64_t carries = plan.segments.size() > 1 ? 2 * plan.HV * kStateBytes : 0;
  w.chunks = w.carries + static_cast<std::size_t>(carries);
  w.runs = w.chunks + round_up(plan.chunks.size() * sizeof(ChunkEntry));
  w.bytes = w.runs + round_up(plan.runs.size() * sizeof(RunEntry));
}

}  // namespace

const char* name(PrefillPolicy policy) noexcept {
  switch (policy) {
    case PrefillPolicy::kMixed: return "mixed";
    case PrefillPolicy::kSplit: return "split";
    case PrefillPolicy::kBf16: return "bf16";
  }
  return "?";
}

PrefillPlan plan_prefill(const PrefillExtents& e, const PrefillOptions& options) {
  if (options.v_columns != 0 && options.v_columns != 32 && options.v_columns != 64) {
    refuse("v_columns", "0, 32 or 64", std::to_string(options.v_columns));
  }
  PrefillPlan plan;
  plan.policy = options.policy;
  plan.HV = e.HV;
  const std::int64_t chunks = count_chunks(e);
  if (chunks == 0) return plan;
  plan.chunks = chunk_table(e);
  const std::int64_t step = segment_chunks(chunks, e.HV, options);
  for (std::int64_t first = 0; first < chunks; first += step) {
    PrefillSegment segment;
    segment.first_chunk = first;
    segment.chunks = std::min(step, chunks - first);
    plan.segments.push_back(segment);
  }
  cut_runs(plan, e);
  plan.v_columns = chain_columns(plan, options);
  const std::int64_t v_blocks = kPrefillDim / plan.v_columns;
  for (PrefillSegment& segment : plan.segments) {
    segment.factors =
        shape_of(segment.chunks * e.HV, 256, prefill_factors_shared_bytes(plan.policy));
    segment.chain =
        shape_of(segment.runs * e.HV * v_blocks, static_cast<unsigned>(plan.v_columns) * 2,
                 prefill_chain_shared_bytes(plan.policy, plan.v_columns));
  }
  place_workspace(plan);
  return plan;
}

std::string PrefillPlan::text() const {
  std::string text = std::string("prefill ") + name(policy) + " segments " +
                     std::to_string(segments.size()) + " chunks " + std::to_string(chunks.size());
  if (!segments.empty()) {
    text += " factors " + text_of(segments[0].factors.grid) + "x" +
            std::to_string(segments[0].factors.block.x) + " chain " +
            text_of(segments[0].chain.grid) + "x" + std::to_string(segments[0].chain.block.x);
  }
  return text + " workspace " + std::to_string(workspace.bytes);
}

}  // namespace kda::cuda
