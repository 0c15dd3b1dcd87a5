#include "harness/case/case_line_keys.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Products of three extents must fit into 64 bits wherever they are formed.
constexpr std::int64_t kMostExtent = 2147483647;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::int64_t parse_extent(std::string_view key, std::string_view text) {
  const auto value = number<std::int64_t>(text);
  if (!value || *value < 0 || *value > kMostExtent) {
    fail_case_line(key, fmt::format("an integer from 0 to {}", kMostExtent), text);
  }
  return *value;
}

double parse_real(std::string_view key, std::string_view text) {
  const auto value = number<double>(text);
  if (!value || !std::isfinite(*value)) fail_case_line(key, "a finite number", text);
  return *value;
}

bool parse_flag(std::string_view key, std::string_view text) {
  if (text != "0" && text != "1") fail_case_line(key, "0 or 1", text);
  return text == "1";
}

std::vector<std::int64_t> parse_lens(std::string_view key, std::string_view text) {
  std::vector<std::int64_t> lens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    lens.push_back(parse_extent(key, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lens;
}

/// A value that is one of a few words.
template <class T, std::size_t N>
T parse_word(std::string_view key, std::string_view text,
             const std::array<std::pair<std::string_view, T>, N>& words) {
  std::vector<std::string_view> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.push_back(word);
  }
  fail_case_line(key, one_of(known, text), text);
}

template <class T, std::size_t N>
std::string_view word_of(T value, const std::array<std::pair<std::string_view, T>, N>& words) {
  return std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.second == value; })
      ->first;
}

constexpr std::array<std::pair<std::string_view, Op>, 3> kOps = {
    {{"kda_prefill", Op::kKdaPrefill},
     {"chunk_kda", Op::kChunkKda},
     {"recurrent_kda", Op::kRecurrentKda}}};
constexpr std::array<std::pair<std::string_view, Dtype>, 3> kDtypes = {
    {{"bf16", Dtype::kBf16}, {"f16", Dtype::kF16}, {"f32", Dtype::kF32}}};
constexpr std::array<std::pair<std::string_view, GateForm>, 3> kGates = {
    {{"none", GateForm::kLogDecay},
     {"softplus", GateForm::kSoftplus},
     {"bound", GateForm::kLowerBound}}};

Family parse_family(std::string_view key, std::string_view text) {
  if (const auto family = find_family(text)) return *family;
  std::vector<std::string_view> known;
  for (const FamilyInfo& info : all_families()) known.push_back(info.name);
  fail_case_line(key, one_of(known, text), text);
}

template <auto Member>
constexpr CaseLineKey extent(std::string_view name) {
  return {name, [](CaseLine& line, auto key, auto text) { line.*Member = parse_extent(key, text); },
          [](const CaseLine& line) { return std::optional(std::to_string(line.*Member)); }};
}

template <auto Member>
constexpr CaseLineKey flag(std::string_view name) {
  return {name, [](CaseLine& line, auto key, auto text) { line.*Member = parse_flag(key, text); },
          [](const CaseLine& line) {
            return line.*Member ? std::optional<std::string>("1") : std::nullopt;
          }};
}

template <auto Member>
constexpr CaseLineKey dtype_beside(std::string_view name) {
  return {
      name,
      [](CaseLine& line, auto key, auto text) { line.*Member = parse_word(key, text, kDtypes); },
      [](const CaseLine& line) {
        return line.*Member == line.dtype ? std::nullopt
                                          : std::optional<std::string>(kda::name(line.*Member));
      }};
}

/// Anything but the default value of the line.
template <auto Member>
std::optional<std::string> unless_default(const CaseLine& line) {
  if (line.*Member == CaseLine{}.*Member) return std::nullopt;
  return fmt::format("{}", line.*Member);
}

constexpr std::array<CaseLineKey, 25> kKeys = {{
    {"op", [](auto& line, auto key, auto text) { line.op = parse_word(key, text, kOps); },
     [](const auto& line) { return std::optional(std::string(word_of(line.op, kOps))); }},
    extent<&CaseLine::B>("B"),
    extent<&CaseLine::T>("T"),
    extent<&CaseLine::H>("H"),
    extent<&CaseLine::HV>("HV"),
    extent<&CaseLine::K>("K"),
    extent<&CaseLine::V>("V"),
    {"lens", [](auto& line, auto key, auto text) { line.lens = parse_lens(key, text); },
     [](const auto& line) {
       return line.lens ? std::optional(fmt::format("{}", fmt::join(*line.lens, ",")))
                        : std::nullopt;
     }},
    {"dtype", [](auto& line, auto key, auto text) { line.dtype = parse_word(key, text, kDtypes); },
     [](const auto& line) {
       return line.dtype == CaseLine{}.dtype ? std::nullopt
                                             : std::optional<std::string>(kda::name(line.dtype));
     }},
    dtype_beside<&CaseLine::g_dtype>("g_dtype"),
    dtype_beside<&CaseLine::beta_dtype>("beta_dtype"),
    {"chunk", [](auto& line, auto key, auto text) { line.chunk = parse_extent(key, text); },
     unless_default<&CaseLine::chunk>},
    {"scale", [](auto& line, auto key, auto text) { line.scale = parse_real(key, text); },
     [](const auto& line) {
       return line.scale ? std::optional(fmt::format("{}", *line.scale)) : std::nullopt;
     }},
    {"gate", [](auto& line, auto key, auto text) { line.gate = parse_word(key, text, kGates); },
     [](const auto& line) {
       return line.gate == GateForm::kLogDecay
                  ? std::nullopt
                  : std::optional(std::string(word_of(line.gate, kGates)));
     }},
    {"lower_bound",
     [](auto& line, auto key, auto text) { line.lower_bound = parse_real(key, text); },
     unless_default<&CaseLine::lower_bound>},
    flag<&CaseLine::safe_gate>("safe_gate"),
    flag<&CaseLine::l2norm>("l2norm"),
    flag<&CaseLine::beta_sigmoid>("beta_sigmoid"),
    flag<&CaseLine::neg_eigval>("neg_eigval"),
    flag<&CaseLine::v_first>("v_first"),
    flag<&CaseLine::initial_state>("initial_state"),
    flag<&CaseLine::final_state>("final_state"),
    flag<&CaseLine::h>("h"),
    {"family", [](auto& line, auto key, auto text) { line.family = parse_family(key, text); },
     [](const auto& line) {
       return line.family == Family::kOrdinary ? std::nullopt
                                               : std::optional(std::string(name(line.family)));
     }},
    {"seed",
     [](auto& line, auto key, auto text) {
       const auto seed = number<std::uint64_t>(text);
       if (!seed) fail_case_line(key, "an integer from 0 to 2^64 - 1", text);
       line.seed = *seed;
     },
     unless_default<&CaseLine::seed>},
}};

}  // namespace

std::span<const CaseLineKey> case_line_keys() noexcept { return kKeys; }

std::string one_of(std::span<const std::string_view> known, std::string_view got) {
  const auto nearest = std::min_element(known.begin(), known.end(), [&](auto a, auto b) {
    return edit_distance(a, got) < edit_distance(b, got);
  });
  return fmt::format("one of {} (did you mean '{}'?)", fmt::join(known, ", "), *nearest);
}

void fail_case_line(std::string_view key, std::string_view wanted, std::string_view got) {
  throw Error(ErrorCode::kCaseLineInvalid,
              fmt::format("case line, {}: wanted {}, got '{}'", key, wanted, got));
}

}  // namespace kda::harness
