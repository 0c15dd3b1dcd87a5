#include "harness/case/fill_family.hpp"

#include <array>

namespace kda::harness {
namespace {

constexpr std::array<FamilyInfo, 12> kFamilies = {{
    {Family::kOrdinary, "ordinary", "random inputs; indexing, options, rounding"},
    {Family::kSlowGate, "slow_gate", "long memory: errors that add up over tokens"},
    {Family::kNoDecay, "no_decay", "decay exactly 1: nothing is ever forgotten"},
    {Family::kGateLadder, "gate_ladder", "overflow of exp(-cumsum g), one threshold a channel"},
    {Family::kResets, "resets", "hard resets: inf * 0, differences of long cumulative sums"},
    {Family::kChannels, "channels", "decays of nine decades side by side"},
    {Family::kCollinear, "collinear", "ill-conditioned triangular inverse"},
    {Family::kIdentical, "identical", "powers of a triangular matrix that must cancel"},
    {Family::kAlternating, "alternating", "the same with alternating signs, beta above 1"},
    {Family::kBeta2, "beta2", "reflections: errors are never damped"},
    {Family::kPadding, "padding", "pad rows that must leave the state untouched"},
    {Family::kWildState, "wild_state", "states and columns over many decades; layout mistakes"},
}};

}  // namespace

std::span<const FamilyInfo> all_families() noexcept { return kFamilies; }

std::string_view name(Family family) noexcept {
  return kFamilies[static_cast<std::size_t>(family)].name;
}

std::optional<Family> find_family(std::string_view name) noexcept {
  for (const FamilyInfo& info : kFamilies) {
    if (info.name == name) return info.family;
  }
  return std::nullopt;
}

}  // namespace kda::harness
