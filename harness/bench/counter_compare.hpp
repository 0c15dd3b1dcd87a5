#pragma once

#include "harness/base/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

inline constexpr std::string_view kCounterFormat = "kdacheck-counters";
inline constexpr int kCounterVersion = 1;

enum class CountVerdict : std::uint8_t { kGrew, kFewer, kSame, kNone };

/// "grew", "fewer", "same", "no verdict".
[[nodiscard]] std::string_view name(CountVerdict verdict) noexcept;

/// One counter of one kernel in two files. `counter` is empty where a whole kernel is on one side
/// only.
struct CountLine {
  std::string kernel;
  std::string place;  ///< the case, or the architecture
  std::string counter;
  std::optional<std::int64_t> base;
  std::optional<std::int64_t> changed;
  CountVerdict verdict = CountVerdict::kNone;
  std::string reason;  ///< why there is no verdict
};

struct CountComparison {
  std::string base;
  std::string changed;
  std::vector<std::string> notes;
  std::vector<CountLine> lines;  ///< those that are not the same
  std::size_t same = 0;

  [[nodiscard]] std::size_t count(CountVerdict verdict) const;
  /// kFailed when a counter grew, kUnavailable when nothing could be compared.
  [[nodiscard]] Exit exit_status() const;
};

/// More is worse of every counter but blocks per multiprocessor, of which less is. A launch of
/// another shape, and a kernel or case on one side only, has no verdict. Throws kBenchFileInvalid
/// for what is no file of `bench --counters` of this version.
[[nodiscard]] CountComparison compare_counters(const nlohmann::json& base,
                                               const nlohmann::json& changed,
                                               const std::string& base_path,
                                               const std::string& new_path);

[[nodiscard]] std::string to_text(const CountComparison& comparison);

/// Format "kdacheck-bench-comparison", version 1, kind "counters".
[[nodiscard]] nlohmann::json to_json(const CountComparison& comparison);

}  // namespace kda::harness
