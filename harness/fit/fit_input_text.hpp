#pragma once

#include "harness/fit/fit_input.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace kda::harness {

/// Where in a text something stands, both from 1.
struct TextPlace {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// The place of text[offset]; columns count characters (bytes).
[[nodiscard]] TextPlace place_of(std::string_view text, std::size_t offset);

/// Throws kFitInputInvalid: "SOURCE: line L, column C: WHAT".
[[noreturn]] void fail_input(const std::string& source, TextPlace place, const std::string& what);

/// A token for a message: quoted, cut short, without unprintable characters.
[[nodiscard]] std::string shown(std::string_view token);

/// A whole token as a length or a latency. `name` says in the message what was wanted.
[[nodiscard]] std::int64_t parse_length(std::string_view token, const std::string& source,
                                        TextPlace place);
[[nodiscard]] double parse_latency(std::string_view token, const std::string& source,
                                   TextPlace place);

[[nodiscard]] std::string_view trimmed(std::string_view text);

[[nodiscard]] LatencySamples parse_table(std::string_view text, const std::string& source);
[[nodiscard]] LatencySamples parse_json_samples(std::string_view text, const std::string& source);
[[nodiscard]] LatencySamples parse_log(std::string_view text, const std::string& source);

}  // namespace kda::harness
