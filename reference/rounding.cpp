#include "reference/rounding.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace kda::reference {
namespace {

struct Named {
  ErrorSource source;
  std::string_view name;
  Rounding Formats::*field;  ///< nullptr for kUnderflow, which every field has
};

constexpr std::array<Named, 8> kSources{{
    {ErrorSource::kOperands, "operands", &Formats::operands},
    {ErrorSource::kTriangle, "triangle", &Formats::triangle},
    {ErrorSource::kSolve, "solve", &Formats::solve},
    {ErrorSource::kAccumulation, "accumulation", &Formats::accumulation},
    {ErrorSource::kGate, "gate", &Formats::gate},
    {ErrorSource::kState, "state", &Formats::state},
    {ErrorSource::kOutput, "output", &Formats::output},
    {ErrorSource::kUnderflow, "underflow", nullptr},
}};

}  // namespace

Rounding rounding_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::kBf16: return kRoundBf16;
    case Dtype::kF16: return kRoundF16;
    case Dtype::kF32: return kRoundF32;
    case Dtype::kF64: return kRoundF64;
    case Dtype::kI32:
    case Dtype::kI64: break;
  }
  return kExact;
}

double largest(const Rounding& rounding) noexcept {
  if (rounding == kExact) return std::numeric_limits<double>::infinity();
  if (rounding == kRoundF64) return std::numeric_limits<double>::max();
  if (rounding == kRoundF16) return 65504;
  if (rounding == kRoundBf16Pair) return largest(kRoundBf16);  // the high part has to hold it
  return (2 - 2 * rounding.unit) * 0x1p127;                    // eight bits of exponent
}

Formats default_formats(Dtype operands, Dtype output) noexcept {
  const Rounding stored = rounding_of(operands);
  const bool narrow = size_of(operands) == 2;
  const Rounding wide = operands == Dtype::kF64 ? kRoundF64 : kRoundF32;
  return {.operands = stored,
          .triangle = stored,
          .solve = narrow ? kRoundTf32 : wide,
          .accumulation = wide,
          .gate = wide,
          .state = wide,
          .output = rounding_of(output)};
}

std::span<const ErrorSource> all_error_sources() noexcept {
  static constexpr auto kAll = [] {
    std::array<ErrorSource, kSources.size()> all{};
    std::ranges::transform(kSources, all.begin(), &Named::source);
    return all;
  }();
  return kAll;
}

std::string_view name(ErrorSource source) noexcept {
  return kSources[static_cast<std::size_t>(source)].name;
}

Formats only(const Formats& formats, ErrorSource source) noexcept {
  Formats part = formats;
  for (const Named& other : kSources) {
    if (other.field == nullptr) continue;
    if (source != other.source) (part.*other.field).unit = 0;
    if (source != ErrorSource::kUnderflow) (part.*other.field).underflow = 0;
  }
  // A state no coarser than the sums is rounded by them, which counts as accumulation.
  if (formats.state.unit <= formats.accumulation.unit) part.state = kExact;
  return part;
}

}  // namespace kda::reference
