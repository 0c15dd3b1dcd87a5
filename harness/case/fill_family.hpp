#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kda::harness {

/// What kind of numbers the inputs of a case line are. "Slow" is a log decay of about -2e-4 a
/// token, "none" is 0. With a gate in the kernel, `g` holds the raw value whose log decay comes
/// close to that (exactly 0 cannot be had: -200 stands for it), A_log and dt_bias are 0 except in
/// kOrdinary and kPadding; the bounded gate stops at lower_bound. With beta as a logit the logit
/// comes close too: beta above 1 needs neg_eigval.
enum class Family : std::uint8_t {
  kOrdinary,     ///< random directions, log decays from -4 to -2^-8 by channel, beta in (0, 1)
  kSlowGate,     ///< ordinary, decay slow
  kNoDecay,      ///< ordinary, decay none
  kGateLadder,   ///< channel k decays by rung k mod 13 of 0, -1e-4, -0.5 ... -12, -1000, the places
                 ///< where factored exponentials overflow
  kResets,       ///< decay slow, one token in 20 forgets everything in its head (-1000)
  kChannels,     ///< channel k decays by 10^(k mod 10 - 6): 1e-6 ... 1e3
  kCollinear,    ///< decay slow, keys of a head within 10% of one direction
  kIdentical,    ///< decay slow, one key for all tokens of a head, q = k, beta 0.9
  kAlternating,  ///< decay slow, one key with alternating sign, beta 1.5
  kBeta2,        ///< decay none, random keys, beta 2: reflections
  kPadding,      ///< ordinary; every fourth token and the last quarter of a sequence are pad rows
                 ///< (k = v = beta = 0, log decay 0)
  kWildState,    ///< value columns scaled by 10^(v mod 7 - 3), initial state rows by
                 ///< 10^(k mod 11 - 6), decays as kChannels
};

struct FamilyInfo {
  Family family;
  std::string_view name;     ///< as case lines spell it: "gate_ladder"
  std::string_view meaning;  ///< what it is there to catch
};

/// In the order of the enumeration.
[[nodiscard]] std::span<const FamilyInfo> all_families() noexcept;
[[nodiscard]] std::string_view name(Family family) noexcept;
[[nodiscard]] std::optional<Family> find_family(std::string_view name) noexcept;

}  // namespace kda::harness
