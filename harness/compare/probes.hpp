#pragma once

#include "harness/compare/window.hpp"
#include "reference/types/problem.hpp"

#include <optional>
#include <span>
#include <string_view>

namespace kda::harness {

/// A way to make a wrong result of an exact one.
enum class Probe : std::uint8_t {
  kZeros,
  kMean,             ///< of o: every element the mean of all
  kShifted,          ///< o of the token before, the first of a sequence from its last
  kHeadsRotated,     ///< each head has the values of the next
  kColumnsReversed,  ///< of o: value columns
  kTransposed,       ///< of states, K = V
  kSlotsRotated,     ///< each state is that of the next sequence, h: of the next chunk
};

/// "zeros", "the mean", "shifted by a token", ...
[[nodiscard]] std::string_view name(Probe probe) noexcept;

/// Those that a tensor can be spoilt with.
[[nodiscard]] std::span<const Probe> probes_of(OutputKind kind) noexcept;

/// The exact tensor spoilt, in f64; nothing when that changes no element that is compared. `exact`
/// must have shape_of(kind, semantics).
[[nodiscard]] std::optional<Tensor> spoilt(Probe probe, OutputKind kind, const Semantics& semantics,
                                           const Tensor& exact);

}  // namespace kda::harness
