#include "harness/fit/fit_input.hpp"

#include "harness/fit/fit_input_text.hpp"
#include "reference/fit.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

template <class Number>
std::errc parse_whole(std::string_view token, Number& value) {
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc{}) return error;
  return end == token.data() + token.size() ? std::errc{} : std::errc::invalid_argument;
}

}  // namespace

TextPlace place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1, offset - line_start + 1};
}

void fail_input(const std::string& source, TextPlace place, const std::string& what) {
  throw Error(ErrorCode::kFitInputInvalid,
              fmt::format("{}: line {}, column {}: {}", source, place.line, place.column, what));
}

std::string shown(std::string_view token) {
  constexpr std::size_t kLongest = 40;
  std::string out(token.substr(0, kLongest));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + out + (token.size() > kLongest ? "...\"" : "\"");
}

std::int64_t parse_length(std::string_view token, const std::string& source, TextPlace place) {
  std::int64_t length = 0;
  const std::errc error = parse_whole(token, length);
  if (error == std::errc::invalid_argument) {
    fail_input(source, place, "length: wanted a whole number of tokens, got " + shown(token));
  }
  if (error != std::errc{} || length <= 0 || length > reference::kMaxFitLength) {
    fail_input(source, place, "length: wanted 1 ... 2^53 tokens, got " + shown(token));
  }
  return length;
}

double parse_latency(std::string_view token, const std::string& source, TextPlace place) {
  double latency = 0;
  const std::errc error = parse_whole(token, latency);
  if (error == std::errc::result_out_of_range) {
    fail_input(source, place, "latency: beyond the range of a double: " + shown(token));
  }
  if (error != std::errc{}) {
    fail_input(source, place, "latency: wanted a number of ms, got " + shown(token));
  }
  if (latency < 0) fail_input(source, place, "latency: wanted >= 0 ms, got " + shown(token));
  return latency;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

LatencySamples parse_samples(std::string_view text, const std::string& source) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.find("seq_lens=") != std::string_view::npos) return parse_log(text, source);
  const std::string_view content = trimmed(text);
  if (content.starts_with('{') || content.starts_with('[')) {
    return parse_json_samples(text, source);
  }
  return parse_table(text, source);
}

LatencySamples read_samples(const std::filesystem::path& file) {
  std::error_code ignored;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file, ignored)) {
    throw Error(ErrorCode::kPathNotFound, file.string() + ": wanted a file of samples");
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) throw Error(ErrorCode::kPathNotFound, file.string() + ": cannot be read");
  return parse_samples(text, file.string());
}

}  // namespace kda::harness
