#include "harness/fit/fit_input_text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr std::string_view kLengths = "seq_lens=";
constexpr std::string_view kLatencies = "latencies_ms=";

/// Reads "[1, 2, 3]" at `offset`, which it moves behind the list.
template <class Element>
auto parse_list(std::string_view text, std::size_t& offset, const std::string& source,
                Element parse_element) {
  std::vector<decltype(parse_element(text, source, TextPlace{}))> out;
  if (offset >= text.size() || text[offset] != '[') {
    fail_input(source, place_of(text, offset), "wanted a list, '['");
  }
  while (true) {
    ++offset;  // behind '[' or ','
    const std::size_t end = text.find_first_of(",]\n", offset);
    if (end == std::string_view::npos || text[end] == '\n') {
      fail_input(source, place_of(text, std::min(end, text.size())),
                 "the list is cut off, wanted ']'");
    }
    const std::string_view element = trimmed(text.substr(offset, end - offset));
    const bool last = text[end] == ']';
    if (!(last && out.empty() && element.empty())) {
      while (offset < end && text[offset] == ' ') ++offset;
      out.push_back(parse_element(element, source, place_of(text, offset)));
    }
    offset = end;
    if (last) break;
  }
  ++offset;
  return out;
}

}  // namespace

LatencySamples parse_log(std::string_view text, const std::string& source) {
  LatencySamples out;
  TextPlace found;
  for (std::size_t at = text.find(kLengths); at != std::string_view::npos;
       at = text.find(kLengths, at)) {
    const TextPlace place = place_of(text, at);
    LatencySamples samples;
    at += kLengths.size();
    samples.seq_lens = parse_list(text, at, source, parse_length);
    const std::size_t line_end = std::min(text.find('\n', at), text.size());
    at = text.substr(0, line_end).find(kLatencies, at);
    if (at == std::string_view::npos) {
      fail_input(source, place_of(text, line_end), "wanted latencies_ms=[...] behind seq_lens");
    }
    at += kLatencies.size();
    samples.latencies = parse_list(text, at, source, parse_latency);
    if (samples.seq_lens.size() != samples.latencies.size()) {
      fail_input(source, place_of(text, at - 1),
                 fmt::format("wanted one latency per length, got {} lengths and {} latencies",
                             samples.seq_lens.size(), samples.latencies.size()));
    }
    if (samples.seq_lens.empty()) fail_input(source, place, "wanted samples, got none");
    if (!out.seq_lens.empty() &&
        (samples.seq_lens != out.seq_lens || samples.latencies != out.latencies)) {
      fail_input(source, place,
                 fmt::format("another profile than in line {}: keep one of them", found.line));
    }
    if (out.seq_lens.empty()) found = place;
    out = std::move(samples);
  }
  return out;
}

}  // namespace kda::harness
