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
  kCrashed,       ///< its process ended by a signal or with a status that says failure
  kTimedOut,      ///< its process did not come back within --timeout
  kMalformed,     ///< no result, half of one, or one of a wrong shape
  kKnownFailure,  ///< one of the failures above, listed with a reason and not expired; no pass
  kUnsupported,   ///< the implementation does not serve the case; never a pass
  kSkipped,       ///< asked for, but not to be had here (no GPU, no library); never a pass
  kFixtureError,  ///< the case itself cannot be read
};

inline constexpr std::uint8_t kVerdictCount = 11;

/// "passed", "failed", "timed_out", "fixture_error", ...
[[nodiscard]] constexpr std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kPassed: return "passed";
    case Verdict::kFailed: return "failed";
    case Verdict::kRefused: return "refused";
    case Verdict::kMistrusted: return "mistrusted";
    case Verdict::kCrashed: return "crashed";
    case Verdict::kTimedOut: return "timed_out";
    case Verdict::kMalformed: return "malformed";
    case Verdict::kKnownFailure: return "known_failure";
    case Verdict::kUnsupported: return "unsupported";
    case Verdict::kSkipped: return "skipped";
    case Verdict::kFixtureError: return "fixture_error";
  }
  return "?";
}

/// The verdict with this name, or kVerdictCount of them: there is none.
[[nodiscard]] constexpr std::uint8_t find_verdict(std::string_view text) noexcept {
  std::uint8_t i = 0;
  while (i < kVerdictCount && name(static_cast<Verdict>(i)) != text) ++i;
  return i;
}

/// The implementation was run and did wrong: exit status 1.
[[nodiscard]] constexpr bool is_failure(Verdict verdict) noexcept {
  return verdict == Verdict::kFailed || verdict == Verdict::kRefused ||
         verdict == Verdict::kMistrusted || verdict == Verdict::kCrashed ||
         verdict == Verdict::kTimedOut || verdict == Verdict::kMalformed;
}

/// The implementation was run and judged, whatever came of it.
[[nodiscard]] constexpr bool was_run(Verdict verdict) noexcept {
  return verdict == Verdict::kPassed || verdict == Verdict::kKnownFailure || is_failure(verdict);
}

/// Exit status of the program. When several apply the highest of this order wins:
/// interrupted, bad input, failed, unavailable, success.
enum class Exit : std::uint8_t {
  kSuccess = 0,
  kFailed = 1,       ///< a verdict that is_failure; a fit error; no answer; an unexpected pass
  kBadInput = 2,     ///< bad usage, or unreadable input (other cases still ran)
  kUnavailable = 3,  ///< something asked for is not available here, or nothing was compared
  kInterrupted = 130,
};

}  // namespace kda::harness
