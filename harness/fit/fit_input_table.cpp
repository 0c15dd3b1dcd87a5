#include "harness/fit/fit_input_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// The fields of a line. A semicolon or a tab separates before a comma does, so that a decimal
/// comma is seen as what it is and refused; without any of the three, blanks separate.
std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (const char separator : {';', '\t', ','}) {
    if (line.find(separator) == std::string_view::npos) continue;
    std::size_t end = 0;
    for (; (end = line.find(separator)) != std::string_view::npos; line.remove_prefix(end + 1)) {
      fields.push_back(trimmed(line.substr(0, end)));
    }
    fields.push_back(trimmed(line));
    return fields;
  }
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const std::size_t end = std::min(line.find(' '), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return fields;
}

/// Starts like a number, well formed or not; a header does not.
bool looks_numeric(std::string_view field) {
  double value = 0;
  return std::from_chars(field.data(), field.data() + field.size(), value).ec !=
             std::errc::invalid_argument ||
         field.starts_with('+');
}

bool mentions(std::string_view field, std::initializer_list<std::string_view> words) {
  std::string lower(field);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(
      words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

void check_header(const std::vector<std::string_view>& fields, const std::string& source,
                  std::size_t line) {
  if (mentions(fields[0], {"latenc", "time", "ms"}) && mentions(fields[1], {"len", "seq", "tok"})) {
    fail_input(source, {line, 1},
               "columns: wanted length then latency, got a header that has them the other way "
               "round");
  }
}

}  // namespace

LatencySamples parse_table(std::string_view text, const std::string& source) {
  LatencySamples out;
  bool header_possible = true;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    content = content.substr(0, content.find('#'));
    // Only blanks are trimmed away: a lone separator is an empty field, not an empty line.
    if (trimmed(content).empty()) continue;
    const auto fields = split(content);
    if (fields.size() != 2) {
      fail_input(source, {line, std::min<std::size_t>(fields.size() + 1, 3)},
                 fmt::format("wanted two columns, length and latency, got {}", fields.size()));
    }
    if (header_possible && !looks_numeric(fields[0]) && !looks_numeric(fields[1]) &&
        !fields[0].empty() && !fields[1].empty()) {
      check_header(fields, source, line);
      header_possible = false;
      continue;
    }
    header_possible = false;
    out.seq_lens.push_back(parse_length(fields[0], source, {line, 1}));
    out.latencies.push_back(parse_latency(fields[1], source, {line, 2}));
  }
  if (out.seq_lens.empty()) fail_input(source, {1, 1}, "wanted samples, got none");
  return out;
}

}  // namespace kda::harness
