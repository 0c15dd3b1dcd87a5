#pragma once

#include <cstdint>
#include <string_view>

namespace kda::harness {

/// What became of one case and one implementation.
enum class Verdict : std::uint8_t {
  kPassed,
  kFailed,        ///< a wrong value, a wrong error code, or an input accepted that must be refused
  kRefused,       ///< the implementation refused a case that its contract accepts
  kMistrusted,    ///< the comparison would also pass a vacuous result, so it proves nothing
  kUnsupported,   ///< the implementation does not serve the case; never a pass
  kFixtureError,  ///< the case itself cannot be read
};

inline constexpr std::uint8_t kVerdictCount = 6;

/// "passed", "failed", "refused", "mistrusted", "unsupported", "fixture_error".
[[nodiscard]] constexpr std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kPassed: return "passed";
    case Verdict::kFailed: return "failed";
    case Verdict::kRefused: return "refused";
    case Verdict::kMistrusted: return "mistrusted";
    case Verdict::kUnsupported: return "unsupported";
    case Verdict::kFixtureError: return "fixture_error";
  }
  return "?";
}

/// Exit status of the program. When several apply the highest of this order wins:
/// interrupted, bad input, failed, unavailable, success.
enum class Exit : std::uint8_t {
  kSuccess = 0,
  kFailed = 1,       ///< failed, mistrusted or refused cases; a fit error; no answer
  kBadInput = 2,     ///< bad usage, or unreadable input (other cases still ran)
  kUnavailable = 3,  ///< something asked for is not available here, or nothing was compared
  kInterrupted = 130,
};

}  // namespace kda::harness
