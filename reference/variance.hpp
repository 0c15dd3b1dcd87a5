#pragma once

#include "reference/fast.hpp"
#include "reference/rounding.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kda::reference {

/// Standard deviations sigma of the rounding error that number formats make unavoidable, for
/// everything that one value head of one sequence returns; f64, dense, in the units of the outputs.
struct HeadDeviation {
  std::int64_t n = 0;               ///< sequence
  std::int64_t hv = 0;              ///< value head
  std::vector<double> o;            ///< [length of the sequence, V]
  std::vector<double> final_state;  ///< [K,V] whatever the state layout; always filled
  std::vector<double> h;            ///< [chunks of the sequence, K,V]; empty unless chunk_states
  /// [length]: one number per token, equal where the rows of k (normalised if asked for) are
  /// bitwise equal. Equal keys make equal roundings: a group of results holds no more independent
  /// values than it has different keys.
  std::vector<std::uint64_t> keys;
};

using DeviationSink = std::function<void(const HeadDeviation&)>;

/// A variance of the rounding error for every element of o, final_state and h, carried beside the
/// exact recurrence: per block of tokens the chunk algorithm once more with every matrix squared
/// element by element, since independent errors add in squares where values add (docs/bound.md
/// derives it). It depends on the case and the formats, never on a result.
///
/// sigma = 0 means that the element must be equal: the initial state (h before the first token,
/// final state of an empty sequence) and what padding tokens leave as it was.
/// sigma is finite and does not grow with the length beyond what the exact transition of the state
/// amplifies. For f64 formats the expected values err as much as the judged ones: use
/// sqrt(sigma_got^2 + sigma_expected^2). The error of f64 expected values is below 1e-7 sigma for
/// f32 formats, and less for narrower ones.
///
/// Calls `sink` once for every head of every sequence, one call at a time, in no particular order
/// and from any thread; holds the results of one head per thread. Results are the same to the bit
/// for any number of threads, but not for different instruction sets (1e-6 apart).
/// `semantics` must come from `check` on this `problem`; for inputs outside its precondition (a
/// gate above 0, NaN) deviations are NaN or inf where values are.
/// Throws kUsage for an instruction set that is not available or a block beyond kMaxBoundBlock, and
/// what `sink` throws.
void deviations_by_head(const Problem& problem, const Semantics& semantics, const Formats& formats,
                        const FastOptions& options, const DeviationSink& sink);

/// One head of one sequence, in the calling thread.
[[nodiscard]] HeadDeviation deviation_of_head(const Problem& problem, const Semantics& semantics,
                                              const Formats& formats, std::int64_t n,
                                              std::int64_t hv);

/// All of them, f64, in the shapes and layouts in which `recurrent` returns the outputs.
struct Deviations {
  Tensor o;                           ///< [B,T,HV,V]; 0 in rows of no sequence
  std::optional<Tensor> final_state;  ///< where the case asks for it
  std::optional<Tensor> h;            ///< where the case asks for it
  std::vector<std::uint64_t> keys;  ///< [B,T,HV], as HeadDeviation::keys; 0 in rows of no sequence
};

[[nodiscard]] Deviations deviations(const Problem& problem, const Semantics& semantics,
                                    const Formats& formats, const FastOptions& options = {});

}  // namespace kda::reference
