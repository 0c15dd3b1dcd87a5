#include "harness/compare/formats.hpp"

#include "reference/types/error.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace kda::harness {
namespace {

using reference::Rounding;
using reference::StateStorage;

constexpr std::array<std::pair<std::string_view, Rounding>, 6> kFormats{{
    {"bf16", reference::kRoundBf16},
    {"f16", reference::kRoundF16},
    {"tf32", reference::kRoundTf32},
    {"bf16x2", reference::kRoundBf16Pair},
    {"f32", reference::kRoundF32},
    {"f64", reference::kRoundF64},
}};

/// A place where an implementation rounds, by name.
struct PlaceName {
  std::string_view name;
  std::optional<Rounding> StatedFormats::*stated;
  Rounding reference::Formats::*used;
};

constexpr std::array<PlaceName, 7> kPlaces{{
    {"operands", &StatedFormats::operands, &reference::Formats::operands},
    {"triangle", &StatedFormats::triangle, &reference::Formats::triangle},
    {"solve", &StatedFormats::solve, &reference::Formats::solve},
    {"accumulation", &StatedFormats::accumulation, &reference::Formats::accumulation},
    {"gate", &StatedFormats::gate, &reference::Formats::gate},
    {"state", &StatedFormats::state, &reference::Formats::state},
    {"output", &StatedFormats::output, &reference::Formats::output},
}};

constexpr std::string_view kEveryToken = "/token";

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kFormatsInvalid, "formats: " + why);
}

template <class Table, class Name>
std::string names(const Table& table, Name name_of) {
  std::string text;
  for (const auto& entry : table) text += (text.empty() ? "" : ", ") + std::string(name_of(entry));
  return text;
}

Rounding parse_format(std::string_view place, std::string_view text) {
  for (const auto& [name, rounding] : kFormats) {
    if (name == text) return rounding;
  }
  refuse(std::string(place) + ": expected one of " +
         names(kFormats, [](const auto& f) { return f.first; }) + ", got '" + std::string(text) +
         "'");
}

std::string_view name_of(const Rounding& rounding) {
  for (const auto& [name, known] : kFormats) {
    if (known == rounding) return name;
  }
  return "exact";
}

std::int64_t parse_block(std::string_view text) {
  std::int64_t block = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), block);
  if (error == std::errc() && end == text.data() + text.size() && block >= 1 &&
      block <= reference::kMaxBoundBlock) {
    return block;
  }
  refuse("block: expected 1 to " + std::to_string(reference::kMaxBoundBlock) + ", got '" +
         std::string(text) + "'");
}

/// One PLACE=FORMAT.
void parse_item(std::string_view item, StatedFormats& stated) {
  const std::size_t equals = item.find('=');
  const std::string_view place =
      equals == std::string_view::npos ? "operands" : item.substr(0, equals);
  std::string_view format = equals == std::string_view::npos ? item : item.substr(equals + 1);
  if (place == "block") {
    if (stated.block != 0) refuse("block is given twice");
    stated.block = parse_block(format);
    return;
  }
  for (const PlaceName& known : kPlaces) {
    if (known.name != place) continue;
    if (stated.*known.stated) refuse(std::string(place) + " is given twice");
    if (place == "state" && format.ends_with(kEveryToken)) {
      format.remove_suffix(kEveryToken.size());
      stated.state_storage = StateStorage::kPerToken;
    }
    stated.*known.stated = parse_format(place, format);
    return;
  }
  refuse("expected one of " + names(kPlaces, [](const PlaceName& p) { return p.name; }) +
         ", block, got '" + std::string(place) + "'");
}

void append(std::string& text, std::string_view place, std::string_view format) {
  text += (text.empty() ? "" : ",") + std::string(place) + "=" + std::string(format);
}

void append_storage(std::string& text, std::string_view place, StateStorage storage) {
  if (place == "state" && storage == StateStorage::kPerToken) text += kEveryToken;
}

/// Where nothing is stated. Operands of a format that is no dtype round like f32 elsewhere, beside
/// a solve in tf32.
reference::Formats assumed(const StatedFormats& stated, const Problem& problem) {
  const Dtype output = problem.v.dtype;
  if (!stated.operands) return reference::default_formats(problem.q.dtype, output);
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16, Dtype::kF32, Dtype::kF64}) {
    if (*stated.operands == reference::rounding_of(dtype))
      return reference::default_formats(dtype, output);
  }
  reference::Formats formats = reference::default_formats(Dtype::kF32, output);
  formats.operands = formats.triangle = *stated.operands;
  formats.solve = reference::kRoundTf32;
  return formats;
}

}  // namespace

StatedFormats f32_formats() {
  StatedFormats stated;
  stated.operands = reference::kRoundF32;
  return stated;
}

StatedFormats prefill_formats() { return parse_formats("triangle=bf16x2,block=64"); }

StatedFormats parse_formats(std::string_view text) {
  StatedFormats stated;
  while (true) {
    const std::size_t comma = text.find(',');
    parse_item(text.substr(0, comma), stated);
    if (comma == std::string_view::npos) return stated;
    text.remove_prefix(comma + 1);
  }
}

std::string to_string(const StatedFormats& stated) {
  std::string text;
  for (const PlaceName& place : kPlaces) {
    if (!(stated.*place.stated)) continue;
    append(text, place.name, name_of(*(stated.*place.stated)));
    append_storage(text, place.name, stated.state_storage);
  }
  if (stated.block != 0) append(text, "block", std::to_string(stated.block));
  return text;
}

reference::Formats formats_of(const StatedFormats& stated, const Problem& problem) {
  reference::Formats formats = assumed(stated, problem);
  for (const PlaceName& place : kPlaces) {
    if (stated.*place.stated) formats.*place.used = *(stated.*place.stated);
  }
  formats.state_storage = stated.state_storage;
  formats.block = stated.block;
  return formats;
}

std::string to_string(const reference::Formats& formats) {
  std::string text;
  for (const PlaceName& place : kPlaces) {
    append(text, place.name, name_of(formats.*place.used));
    append_storage(text, place.name, formats.state_storage);
  }
  if (formats.block != 0) append(text, "block", std::to_string(formats.block));
  return text;
}

}  // namespace kda::harness
