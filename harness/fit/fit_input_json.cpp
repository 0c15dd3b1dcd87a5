#include "harness/fit/fit_input_text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;

/// Tells how far the parser has read, so that an error in a value has a place.
class CountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator() = default;
  CountingIterator(const char* at, std::size_t* consumed) : at_(at), consumed_(consumed) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_ = nullptr;
  std::size_t* consumed_ = nullptr;
};

/// Which numbers are being read.
enum class Part : std::uint8_t { kNone, kLengths, kLatencies, kPairs };

/// Takes the numbers of the two lists, or of the pairs, and skips all else of the document.
class SampleReader final : public nlohmann::json_sax<json> {
 public:
  SampleReader(std::string_view text, std::string source)
      : text_(text), source_(std::move(source)) {}

  std::size_t consumed = 0;

  [[nodiscard]] LatencySamples take() {
    if (out_.seq_lens.size() != out_.latencies.size()) {
      fail_input(source_, latencies_place_,
                 fmt::format("wanted one latency per length, got {} lengths and {} latencies",
                             out_.seq_lens.size(), out_.latencies.size()));
    }
    if (out_.seq_lens.empty()) {
      fail_input(source_, {1, 1},
                 "wanted seq_lens and latencies_ms, or pairs, with samples, got none");
    }
    return std::move(out_);
  }

  bool null() override { return other("null"); }
  bool boolean(bool value) override { return other(value ? "true" : "false"); }
  bool string(string_t& value) override { return other(shown(value)); }
  bool binary(binary_t& /*value*/) override { return other("binary"); }
  bool number_integer(number_integer_t /*value*/) override { return number(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return number(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return number();
  }

  bool start_object(std::size_t /*elements*/) override {
    if (wanted()) return other("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ != 1 || in_pairs_) return true;
    next_ = name == "seq_lens"                              ? Part::kLengths
            : name == "latencies_ms" || name == "latencies" ? Part::kLatencies
                                                            : Part::kNone;
    if (next_ != Part::kNone && seen_[static_cast<std::size_t>(next_)]) {
      fail_input(source_, place(consumed), "the second " + shown(name));
    }
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (depth_ == 0) {
      in_pairs_ = true;
    } else if (in_pairs_ && depth_ == 1) {
      part_ = Part::kPairs;
      column_ = 0;
    } else if (part_ != Part::kNone) {
      return other("a list");
    } else if (depth_ == 1 && next_ != Part::kNone) {
      part_ = next_;
      seen_[static_cast<std::size_t>(part_)] = true;
      next_ = Part::kNone;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    if (part_ == Part::kPairs && column_ != 2) pair_fails();
    if (part_ == Part::kLatencies) latencies_place_ = place(consumed);
    if (depth_ <= 1) part_ = Part::kNone;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: what": the end is enough.
    const std::string text = error.what();
    const std::size_t what = text.find("syntax error");
    fail_input(source_, place_of(text_, position == 0 ? 0 : position - 1),
               "no JSON: " + (what == std::string::npos ? text : text.substr(what)));
  }

 private:
  /// A value that must be a number here.
  [[nodiscard]] bool wanted() const {
    return part_ != Part::kNone || next_ != Part::kNone || (in_pairs_ && depth_ == 1);
  }

  bool other(const std::string& got) {
    if (!wanted()) return true;
    const bool list = part_ == Part::kNone;
    fail_input(source_, place(consumed),
               std::string(list ? "wanted a list" : "wanted a number") + ", got " + got);
  }

  bool number() {
    if (part_ == Part::kNone) return other(std::string(token().text));
    const Token number = token();
    const TextPlace at = place_of(text_, number.offset);
    const bool length = part_ == Part::kLengths || (part_ == Part::kPairs && column_ == 0);
    if (part_ == Part::kPairs && ++column_ > 2) pair_fails();
    if (length) {
      out_.seq_lens.push_back(parse_length(number.text, source_, at));
    } else {
      out_.latencies.push_back(parse_latency(number.text, source_, at));
      latencies_place_ = at;
    }
    return true;
  }

  [[noreturn]] void pair_fails() {
    fail_input(source_, place(consumed),
               fmt::format("wanted pairs of length and latency, got {} values", column_));
  }

  struct Token {
    std::string_view text;
    std::size_t offset = 0;
  };

  /// The number that was just read: the parser stands behind it or one character further.
  [[nodiscard]] Token token() const {
    const auto in_number = [](char c) {
      return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
    };
    std::size_t end = std::min(consumed, text_.size());
    if (end > 0 && !in_number(text_[end - 1])) --end;
    std::size_t start = end;
    while (start > 0 && in_number(text_[start - 1])) --start;
    return {text_.substr(start, end - start), start};
  }

  /// Of the last character that was read.
  [[nodiscard]] TextPlace place(std::size_t behind) const {
    return place_of(text_, behind == 0 ? 0 : behind - 1);
  }

  std::string_view text_;
  std::string source_;
  LatencySamples out_;
  TextPlace latencies_place_;
  std::array<bool, 4> seen_{};
  Part part_ = Part::kNone;  ///< of the list that is open
  Part next_ = Part::kNone;  ///< of the key that was just read
  bool in_pairs_ = false;
  int depth_ = 0;
  int column_ = 0;  ///< in a pair
};

}  // namespace

LatencySamples parse_json_samples(std::string_view text, const std::string& source) {
  SampleReader reader(text, source);
  const CountingIterator begin(text.data(), &reader.consumed);
  const CountingIterator end(text.data() + text.size(), &reader.consumed);
  json::sax_parse(begin, end, &reader);
  return reader.take();
}

}  // namespace kda::harness
