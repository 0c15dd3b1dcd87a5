#include "cuda/prefill_plan.hpp"

#include "cuda/prefill.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace kda::cuda {
namespace {

std::vector<Sequence> sequences(const std::vector<std::int64_t>& lengths) {
  std::vector<Sequence> made;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    made.push_back({0, begin, begin + length, 0});
    begin += length;
  }
  return made;
}

PrefillPlan plan(const std::vector<std::int64_t>& lengths, std::int64_t HV,
                 const PrefillOptions& options = {}) {
  const std::vector<Sequence> all = sequences(lengths);
  return plan_prefill({HV, all}, options);
}

TEST(PrefillPlan, ChunksStartAtEachSequencesStart) {
  const PrefillPlan p = plan({130, 1, 64}, 3);
  ASSERT_EQ(p.chunks.size(), 5U);
  const std::vector<std::int64_t> begins = {0, 64, 128, 130, 131};
  const std::vector<std::int32_t> rows = {64, 64, 2, 1, 64};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(p.chunks[i].begin, begins[i]);
    EXPECT_EQ(p.chunks[i].rows, rows[i]);
  }
  ASSERT_EQ(p.segments.size(), 1U);
  EXPECT_EQ(p.segments[0].factors.grid.x, 5U * 3);
  EXPECT_EQ(p.segments[0].chain.grid.x, 3U * 3 * 4) << "3 sequences, 3 heads, 32 columns a block";
  EXPECT_EQ(p.workspace.carries, p.workspace.chunks) << "one segment carries nothing";
}

/// Every chunk in exactly one run of exactly one segment, in order, and the ends marked.
void expect_whole(const PrefillPlan& p, const std::vector<std::int64_t>& lengths) {
  std::int64_t chunk = 0;
  std::size_t run = 0;
  for (const PrefillSegment& segment : p.segments) {
    EXPECT_EQ(segment.first_chunk, chunk);
    EXPECT_EQ(segment.first_run, static_cast<std::int64_t>(run));
    int cut_at_start = 0;
    int cut_at_end = 0;
    for (std::int64_t i = 0; i < segment.runs; ++i, ++run) {
      const RunEntry& entry = p.runs[run];
      EXPECT_EQ(entry.chunk, chunk);
      chunk += entry.chunks;
      cut_at_start += entry.continues;
      cut_at_end += entry.continued;
      EXPECT_TRUE(entry.continues == 0 || i == 0);
      EXPECT_TRUE(entry.continued == 0 || i == segment.runs - 1);
    }
    EXPECT_LE(cut_at_start, 1);
    EXPECT_LE(cut_at_end, 1);
    EXPECT_EQ(chunk, segment.first_chunk + segment.chunks);
  }
  EXPECT_EQ(run, p.runs.size());
  EXPECT_EQ(chunk, static_cast<std::int64_t>(p.chunks.size()));
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    std::int64_t chunks = 0;
    for (const RunEntry& entry : p.runs)
      chunks += entry.n == static_cast<int>(n) ? entry.chunks : 0;
    EXPECT_EQ(chunks, (lengths[n] + 63) / 64) << n;
  }
}

TEST(PrefillPlan, SegmentsCutSequencesAnywhere) {
  const std::vector<std::int64_t> lengths = {1300, 547, 2048, 963, 271, 3063};
  for (const std::int64_t most : {1, 2, 3, 7, 16, 50, 1000}) {
    const PrefillPlan p = plan(lengths, 2, {.chunks_per_segment = most});
    expect_whole(p, lengths);
    for (const PrefillSegment& segment : p.segments) EXPECT_LE(segment.chunks, most);
  }
}

TEST(PrefillPlan, WorkspaceStaysBounded) {
  const std::size_t at_8k = prefill_workspace_bytes(1, 8192, 64);
  EXPECT_EQ(prefill_blob_bytes(PrefillPolicy::kMixed), 87808U);
  EXPECT_EQ(prefill_blob_bytes(PrefillPolicy::kSplit), 120576U);
  EXPECT_EQ(at_8k, 8192U * 87808 + 128 * 16 + 128) << "blobs, chunk table, one run";
  const std::size_t carries = 2 * 64 * 128 * 128 * 4;
  const std::size_t at_1m = prefill_workspace_bytes(1, 1000000, 64);
  EXPECT_LE(at_1m, at_8k + carries + 15625 * 16 + 128 * 32 + 256);
  const PrefillPlan p = plan({1000000}, 64);
  EXPECT_GE(p.segments.size(), 122U);
  expect_whole(p, {1000000});
}

TEST(PrefillPlan, MoreThanTwoToThe31Elements) {
  constexpr std::int64_t kTokens = 1 << 25;  // of 64 heads and 128 channels: 2^38 elements
  const std::vector<std::int64_t> lengths = {kTokens, kTokens - 1};
  const PrefillPlan p = plan(lengths, 64);
  expect_whole(p, lengths);
  EXPECT_EQ(p.chunks.size(), 2U << 19);
  EXPECT_EQ(p.chunks.back().begin, 2 * kTokens - 64);
  EXPECT_EQ(p.chunks.back().rows, 63);
  constexpr std::size_t kChunkAndHead = 87808;
  EXPECT_EQ(p.workspace.carries, kChunkAndHead * 8192)
      << "a segment's, however long the sequences are";
  const PrefillPlan whole = plan(lengths, 64, {.chunks_per_segment = 2 << 19});
  ASSERT_EQ(whole.segments.size(), 1U);
  EXPECT_EQ(whole.segments[0].factors.grid.x, 64U << 20);
  EXPECT_EQ(whole.workspace.carries, kChunkAndHead << 26) << "5.9 TB, beyond any 32 bits";
}

TEST(PrefillPlan, ManySequences) {
  const std::vector<std::int64_t> lengths(4096, 65);
  const PrefillPlan p = plan(lengths, 32);
  expect_whole(p, lengths);
  EXPECT_EQ(p.chunks.size(), 2U * 4096);
  EXPECT_GE(p.runs.size(), 4096U);
}

TEST(PrefillPlan, NarrowBlocksWhereEachHasAMultiprocessorOfItsOwn) {
  EXPECT_EQ(plan({8192}, 33).v_columns, 32) << "132 blocks of 32 columns for 132";
  EXPECT_EQ(plan({8192}, 34).v_columns, 64);
  EXPECT_EQ(plan({64}, 1, {.v_columns = 64}).v_columns, 64);
  EXPECT_EQ(plan({8192}, 33, {.multiprocessors = 108}).v_columns, 64);
  const PrefillPlan p = plan({64}, 2, {.v_columns = 64});
  EXPECT_EQ(p.segments[0].chain.block.x, 128U);
  EXPECT_EQ(p.segments[0].chain.grid.x, 4U);
}

TEST(PrefillPlan, SharedMemoryFitsTheSmallestDeviceItRunsOn) {
  constexpr std::size_t kSm80 = 163 * 1024;
  for (const PrefillPolicy policy :
       {PrefillPolicy::kMixed, PrefillPolicy::kSplit, PrefillPolicy::kBf16}) {
    for (const int columns : {32, 64}) {
      EXPECT_LE(prefill_chain_shared_bytes(policy, columns), kSm80) << name(policy);
    }
    EXPECT_LE(prefill_factors_shared_bytes(policy), kSm80) << name(policy);
  }
  EXPECT_LE(2 * prefill_factors_shared_bytes(PrefillPolicy::kMixed), kSm80) << "two blocks at once";
}

TEST(PrefillPlan, RefusesWhatAGridCannotHold) {
  for (const std::int64_t HV : {std::int64_t{1} << 50, std::int64_t{1} << 60}) {
    try {
      static_cast<void>(plan({64, 64}, HV));
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kShapeMismatch);
    }
  }
  EXPECT_THROW(static_cast<void>(plan({64}, 1, {.v_columns = 48})), Error);
  // 2^32 chunks, counted before any table of them is made.
  EXPECT_THROW(static_cast<void>(plan({std::int64_t{1} << 38}, 1)), Error);
}

TEST(PrefillPlan, RefusesAWorkspaceBeyondAnySize) {
  constexpr std::int64_t kHeads = 70'000'000'000'000;
  try {  // a grid holds these blocks, but a blob for each is 1.2e19 bytes
    static_cast<void>(plan({128}, kHeads));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kShapeMismatch);
    EXPECT_EQ(error.message(),
              "workspace: wanted less than 2^63 bytes, got 2 chunks of 70000000000000 heads");
  }
  EXPECT_GT(plan({64}, kHeads).workspace.bytes, std::size_t{1} << 62) << "half of that can be said";
}

TEST(PrefillPlan, NothingToDoIsNoLaunch) { EXPECT_TRUE(plan({}, 4).segments.empty()); }

TEST(PrefillPlan, EveryVariantHasAKernelOfItsOwn) {
  std::set<void (*)(void*)> bodies;
  for (const PrefillPolicy policy :
       {PrefillPolicy::kMixed, PrefillPolicy::kSplit, PrefillPolicy::kBf16}) {
    bodies.insert(prefill_factors_forms(policy).cpu);
    bodies.insert(prefill_chain_forms(policy, 64).cpu);
    bodies.insert(prefill_chain_forms(policy, 32).cpu);
  }
  EXPECT_EQ(bodies.size(), 9U);
}

TEST(PrefillPlan, PoliciesHaveNames) {
  EXPECT_STREQ(name(PrefillPolicy::kMixed), "mixed");
  EXPECT_STREQ(name(PrefillPolicy::kSplit), "split");
  EXPECT_STREQ(name(PrefillPolicy::kBf16), "bf16");
}

TEST(PrefillPlan, PrintsItself) {
  EXPECT_EQ(plan({100}, 2).text(),
            "prefill mixed segments 1 chunks 2 factors (4,1,1)x256 chain (8,1,1)x64 workspace "
            "351488");
}

}  // namespace
}  // namespace kda::cuda
