#pragma once

#include <charconv>
#include <cmath>
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

/// For options that take a time in seconds, of at least `least` and at most 11 days. NaN is no
/// time, which a range by itself lets through. Use with `check`.
[[nodiscard]] inline CLI::Validator seconds(double least) {
  const auto check = [least](const std::string& text) -> std::string {
    constexpr double kMost = 1e6;
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool number = error == std::errc{} && stop == text.data() + text.size();
    if (number && value >= least && value <= kMost) return {};
    return CLI::detail::to_string(least) + " to 1000000 seconds wanted, got " + text;
  };
  return {check, ""};
}

}  // namespace kda::harness
