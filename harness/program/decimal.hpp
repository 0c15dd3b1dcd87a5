#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

namespace kda::harness {

/// For options that take whole numbers: decimal, of at least `least`, in the range of int64. CLI11
/// by itself takes 010 for eight and wraps -1 round in unsigned ones. Use with `transform`.
[[nodiscard]] inline CLI::Validator decimal(
    std::int64_t least = std::numeric_limits<std::int64_t>::min()) {
  const auto check = [least](std::string& text) -> std::string {
    std::int64_t value = 0;
    const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || stop != end) return "wanted a whole number, got " + text;
    if (value < least) return "wanted at least " + std::to_string(least) + ", got " + text;
    text = std::to_string(value);
    return {};
  };
  return {check, ""};
}

}  // namespace kda::harness
