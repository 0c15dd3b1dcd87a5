#pragma once

#include "harness/report/report.hpp"

#include <vector>

namespace kda::harness {

/// The report of one run, put together from those of all its shards, in any order: what `check`
/// without --shard would have reported, times and machines excepted. Verdicts on the run as a whole
/// (its bias, idle implementations, known failures) are made anew over all results. Where shards
/// ran on different machines the environment names them all.
/// Throws kShardMissing, kShardRepeated, kShardOptions, kShardInputs, naming the file.
[[nodiscard]] StoredReport merge_shards(std::vector<StoredReport> shards);

}  // namespace kda::harness
