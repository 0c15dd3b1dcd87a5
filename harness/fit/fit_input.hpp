#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness {

/// Latency samples in the order in which they were measured: the first is the cold start, which a
/// fit drops. Lengths in tokens, latencies in ms.
struct LatencySamples {
  std::vector<std::int64_t> seq_lens;
  std::vector<double> latencies;
};

/// Reads samples from text; `source` is what messages call it. The content decides the format:
///
/// - a log that holds `seq_lens=[...], latencies_ms=[...]` (SGLang's profile line) anywhere.
/// Several
///   such lines, as from several ranks, must say the same;
/// - JSON: {"seq_lens": [...], "latencies_ms": [...]} ("latencies" too; other members are ignored)
///   or an array of [length, latency] pairs;
/// - else two columns, length then latency, separated by comma, semicolon, tab or spaces; one
/// header
///   line and comments from '#' are skipped.
///
/// Lengths are whole numbers in 1 ... 2^53. Latencies are not negative; nan and inf are read, the
/// fit judges them. Anything else throws kFitInputInvalid with source, line and column (of a table:
/// the number of the column; else that of the character).
[[nodiscard]] LatencySamples parse_samples(std::string_view text, const std::string& source);

/// parse_samples of a file. Throws kPathNotFound too.
[[nodiscard]] LatencySamples read_samples(const std::filesystem::path& file);

}  // namespace kda::harness
