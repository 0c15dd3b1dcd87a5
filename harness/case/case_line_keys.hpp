#pragma once

#include "harness/case/case_line.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness {

/// A key of the grammar of case lines: how its value is read, and how it is printed.
struct CaseLineKey {
  std::string_view name;
  /// Throws kCaseLineInvalid.
  void (*read)(CaseLine& line, std::string_view key, std::string_view text);
  /// Nothing where the value is the default that parsing would restore.
  std::optional<std::string> (*print)(const CaseLine& line);
};

/// In canonical order.
[[nodiscard]] std::span<const CaseLineKey> case_line_keys() noexcept;

/// "one of a, b, c (did you mean 'b'?)", b = the nearest by edit distance.
[[nodiscard]] std::string one_of(std::span<const std::string_view> known, std::string_view got);

/// Throws kCaseLineInvalid: "case line, KEY: wanted WANTED, got 'GOT'".
[[noreturn]] void fail_case_line(std::string_view key, std::string_view wanted,
                                 std::string_view got);

}  // namespace kda::harness
