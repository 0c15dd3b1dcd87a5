#pragma once

#include "reference/types/problem.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kda::reference {

/// Sets of instructions that the fast form is compiled for; on other machines than x86-64 only
/// kBaseline, which is then whatever the compiler takes for granted.
enum class InstructionSet : std::uint8_t { kBaseline, kAvx2, kAvx512 };

/// "baseline", "avx2", "avx512".
[[nodiscard]] std::string_view name(InstructionSet set) noexcept;

/// Those that this machine runs, the best last. Never empty.
[[nodiscard]] std::span<const InstructionSet> available_instruction_sets();

struct FastOptions {
  int threads = 0;                             ///< 0 = one per processor; the result is the same
  std::optional<InstructionSet> instructions;  ///< absent = the best available
};

/// What `options` ask for. Throws kUsage for a set that is not available.
[[nodiscard]] InstructionSet choose_instructions(const FastOptions& options);

/// Everything that one value head of one sequence returns, f64, dense.
struct HeadResult {
  std::int64_t n;                   ///< sequence
  std::int64_t hv;                  ///< value head
  std::vector<double> o;            ///< [length of the sequence, V]
  std::vector<double> final_state;  ///< [K,V] whatever the state layout; always filled
  std::vector<double> h;  ///< [chunks of the sequence, K,V]; empty unless semantics.chunk_states
};

using HeadSink = std::function<void(const HeadResult&)>;

/// KDA, forward, for large shapes: the arithmetic of `recurrent` (Kimi Linear report,
/// arXiv 2510.26692), four tokens at a time, agreeing with it to 1e-12 of the largest value of a
/// tensor. Calls `sink` once for every head of every sequence, one call at a time, in no particular
/// order and from any thread. Holds the results of a few heads per thread, never all of them, so
/// that outputs larger than the memory can be compared as they come.
/// `semantics` must come from `check` on this `problem`. Results are the same to the bit for any
/// number of threads, but not for different instruction sets.
/// Throws kUsage for an instruction set that is not available, and what `sink` throws.
void fast_by_head(const Problem& problem, const Semantics& semantics, const FastOptions& options,
                  const HeadSink& sink);

/// The same as one set of f64 outputs: shapes and layout as `recurrent` returns them.
[[nodiscard]] Outputs fast(const Problem& problem, const Semantics& semantics,
                           const FastOptions& options = {});

}  // namespace kda::reference
