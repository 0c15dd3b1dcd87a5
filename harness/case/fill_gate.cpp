#include "harness/case/fill_gate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kda::harness {
namespace {

constexpr double kForget = -1000;     // log decay of a reset
constexpr double kNoDecayRaw = -200;  // softplus and sigmoid of it are below 1e-86
constexpr double kPadLogit = -200;
constexpr std::int64_t kRungs = 13;
constexpr std::int64_t kDecades = 10;

/// The raw values are the inverse softplus of the decays, rounded: close
/// enough to land on the same side of every threshold.
constexpr std::array<double, kRungs> kLadder = {0,    -1e-4, -0.5, -1.38, -1.4, -2.75, -2.8,
                                                -5.0, -5.5,  -5.6, -11,   -12,  -1000};
constexpr std::array<double, kRungs> kLadderRaw = {
    kNoDecayRaw, -9.21, -0.433, 1.09, 1.12, 2.68, 2.74, 4.99, 5.5, 5.6, 11, 12, 1000};
constexpr std::array<double, kDecades> kDecadeDecay = {-1e-6, -1e-5, -1e-4, -1e-3, -1e-2,
                                                       -0.1,  -1,    -10,   -100,  -1000};
constexpr std::array<double, kDecades> kDecadeRaw = {-13.8, -11.5, -9.21, -6.91, -4.6,
                                                     -2.25, 0.54,  10,    100,   1000};

enum class Pace : std::uint8_t { kByChannel, kSlow, kNone, kByRung, kResets, kByDecade };

Pace pace(Family family) {
  switch (family) {
    case Family::kOrdinary:
    case Family::kPadding: return Pace::kByChannel;
    case Family::kSlowGate:
    case Family::kCollinear:
    case Family::kIdentical:
    case Family::kAlternating: return Pace::kSlow;
    case Family::kNoDecay:
    case Family::kBeta2: return Pace::kNone;
    case Family::kGateLadder: return Pace::kByRung;
    case Family::kResets: return Pace::kResets;
    case Family::kChannels:
    case Family::kWildState: return Pace::kByDecade;
  }
  return Pace::kByChannel;
}

}  // namespace

GateFill::GateFill(const CaseLine& line)
    : line_(line), rng_(line.seed, "g"), resets_(line.seed, "g reset") {
  const CounterRng channel(line.seed, "g channel");
  for (std::int64_t head = 0; head < line.HV; ++head) {
    for (std::int64_t k = 0; k < line.K; ++k) {
      const auto octave = static_cast<int>(10 * channel.uniform(0, 0, head, k));
      slowest_.push_back(-std::ldexp(1, 1 - octave));
    }
  }
}

void GateFill::row(std::int64_t b, std::int64_t t, std::int64_t head, bool pad,
                   std::span<double> out) const {
  const bool is_raw = line_.gate != GateForm::kLogDecay;
  if (pad) return std::fill(out.begin(), out.end(), is_raw ? kNoDecayRaw : 0.0);
  for (std::size_t c = 0; c < out.size(); ++c) {
    const auto k = static_cast<std::int64_t>(c);
    out[c] = is_raw ? raw(b, t, head, k) : log_decay(b, t, head, k);
  }
}

double GateFill::log_decay(std::int64_t b, std::int64_t t, std::int64_t head,
                           std::int64_t k) const {
  const auto slow = [&] { return -0x1p-13 * (1 + rng_.uniform(b, t, head, k)); };
  switch (pace(line_.family)) {
    case Pace::kByChannel:  // log-uniform over ten octaves by channel, an octave by token
      return slowest_[static_cast<std::size_t>(head * line_.K + k)] *
             (1 + rng_.uniform(b, t, head, k));
    case Pace::kSlow: return slow();
    case Pace::kNone: return 0;
    case Pace::kByRung: return kLadder[static_cast<std::size_t>(k % kRungs)];
    case Pace::kResets: return reset(b, t, head) ? kForget : slow();
    case Pace::kByDecade: return kDecadeDecay[static_cast<std::size_t>(k % kDecades)];
  }
  return 0;
}

double GateFill::raw(std::int64_t b, std::int64_t t, std::int64_t head, std::int64_t k) const {
  const auto slow = [&] { return -9 + rng_.uniform(b, t, head, k); };
  switch (pace(line_.family)) {
    case Pace::kByChannel: return rng_.normal(b, t, head, k);  // A_log and dt_bias set the pace
    case Pace::kSlow: return slow();
    case Pace::kNone: return kNoDecayRaw;
    case Pace::kByRung: return kLadderRaw[static_cast<std::size_t>(k % kRungs)];
    case Pace::kResets: return reset(b, t, head) ? -kForget : slow();
    case Pace::kByDecade: return kDecadeRaw[static_cast<std::size_t>(k % kDecades)];
  }
  return 0;
}

bool GateFill::reset(std::int64_t b, std::int64_t t, std::int64_t head) const {
  return resets_.uniform(b, t, head, 0) < 0.05;
}

double beta_value(const CaseLine& line, bool pad, const CounterRng& rng, std::int64_t b,
                  std::int64_t t, std::int64_t head) {
  const double uniform = rng.uniform(b, t, head, 0);
  if (!line.beta_sigmoid) {
    if (pad) return 0;
    switch (line.family) {
      case Family::kIdentical: return 0.9;
      case Family::kAlternating: return 1.5;
      case Family::kBeta2: return 2;
      default: return line.neg_eigval ? 2 * uniform : uniform;
    }
  }
  if (pad) return kPadLogit;
  switch (line.family) {
    case Family::kIdentical: return line.neg_eigval ? -0.2 : 2.2;  // 0.90
    case Family::kAlternating: return line.neg_eigval ? 1.1 : 8;   // 1.50, else 0.9997
    case Family::kBeta2: return 40;                                // 2, else 1, to the last bit
    default: return 1.5 * rng.normal(b, t, head, 0);
  }
}

Tensor make_a_log(const CaseLine& line) {
  const CounterRng rng(line.seed, "A_log");
  const bool by_channel = pace(line.family) == Pace::kByChannel;
  Tensor a_log(Dtype::kF32, {line.HV});
  for (std::int64_t head = 0; head < line.HV; ++head) {
    a_log.store(head, by_channel ? -1 + 2.5 * rng.uniform(0, 0, head, 0) : 0);
  }
  return a_log;
}

Tensor make_dt_bias(const CaseLine& line) {
  const CounterRng rng(line.seed, "dt_bias");
  const bool by_channel = pace(line.family) == Pace::kByChannel;
  Tensor bias(Dtype::kF32, {line.HV, line.K});
  for (std::int64_t head = 0; head < line.HV; ++head) {
    for (std::int64_t k = 0; k < line.K; ++k) {
      bias.store(head * line.K + k, by_channel ? -6 + 7 * rng.uniform(0, 0, head, k) : 0);
    }
  }
  return bias;
}

}  // namespace kda::harness
