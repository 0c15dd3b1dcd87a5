#include "harness/fuzz/simpler.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

namespace kda::harness {
namespace {

using Simpler = std::optional<KdaCase>;

/// The call with a flag off; nothing when it is off.
template <bool Problem::*kFlag>
Simpler without_flag(const KdaCase& kda_case) {
  if (!(kda_case.options.*kFlag)) return std::nullopt;
  KdaCase simpler = kda_case;
  simpler.options.*kFlag = false;
  return simpler;
}

/// The call with every element of an input replaced by what `change` makes of it; nothing when
/// that changes no element.
template <class Change>
Simpler with_values(const KdaCase& kda_case, const std::string& input, Change change) {
  KdaCase simpler = kda_case;
  Tensor& tensor = simpler.inputs.at(input);
  bool changed = false;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double old = load(tensor.view(), i);
    tensor.store(i, change(old));
    const double now = load(tensor.view(), i);
    changed |= now != old && !(std::isnan(now) && std::isnan(old));
  }
  return changed ? Simpler(std::move(simpler)) : std::nullopt;
}

Simpler without_initial_state(const KdaCase& kda_case) {
  if (kda_case.inputs.count("initial_state") == 0) return std::nullopt;
  KdaCase simpler = kda_case;
  simpler.inputs.erase("initial_state");
  return simpler;
}

/// Ready-made log decays of 0 in the place of a gate in the kernel.
Simpler without_gate(const KdaCase& kda_case) {
  if (!kda_case.options.use_gate_in_kernel) return std::nullopt;
  KdaCase simpler = kda_case;
  simpler.options.use_gate_in_kernel = false;
  simpler.options.safe_gate = false;
  simpler.options.lower_bound.reset();
  simpler.inputs.erase("A_log");
  simpler.inputs.erase("dt_bias");
  return with_values(simpler, "g", [](double) { return 0.0; });
}

/// Ready-made write strengths of 1/2 in the place of logits.
Simpler without_logits(const KdaCase& kda_case) {
  if (!kda_case.options.use_beta_sigmoid_in_kernel) return std::nullopt;
  KdaCase simpler = kda_case;
  simpler.options.use_beta_sigmoid_in_kernel = false;
  simpler.options.allow_neg_eigval = false;
  return with_values(simpler, "beta", [](double) { return 0.5; });
}

Simpler without_scale(const KdaCase& kda_case) {
  if (!kda_case.options.scale) return std::nullopt;
  KdaCase simpler = kda_case;
  simpler.options.scale.reset();
  return simpler;
}

/// One sequence alone needs no bounds.
Simpler without_bounds(const KdaCase& kda_case) {
  const auto bounds = kda_case.inputs.find("cu_seqlens");
  if (bounds == kda_case.inputs.end() || bounds->second.size() != 2) return std::nullopt;
  const auto T = kda_case.inputs.at("q").shape()[1];
  if (load_int(bounds->second.view(), 1) != T || T == 0) return std::nullopt;
  KdaCase simpler = kda_case;
  simpler.inputs.erase("cu_seqlens");
  return simpler;
}

Simpler no_decay(const KdaCase& kda_case) {
  if (kda_case.options.use_gate_in_kernel) return std::nullopt;
  return with_values(kda_case, "g", [](double) { return 0.0; });
}

Simpler half_writes(const KdaCase& kda_case) {
  if (kda_case.options.use_beta_sigmoid_in_kernel) return std::nullopt;
  return with_values(kda_case, "beta", [](double) { return 0.5; });
}

/// To two significant bits: 1, 1.5, 2, 3, 4 ...
double plain(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::round(mantissa * 4), exponent - 2);
}

template <char kInput>
Simpler plain_values(const KdaCase& kda_case) {
  return with_values(kda_case, std::string(1, kInput), plain);
}

constexpr auto kSimplifications = std::to_array<Simplification>({
    {"no chunk states", without_flag<&Problem::return_intermediate_states>},
    {"no final state", without_flag<&Problem::output_final_state>},
    {"no initial state", without_initial_state},
    {"states [K,V]", without_flag<&Problem::state_v_first>},
    {"no bounds", without_bounds},
    {"no norm", without_flag<&Problem::use_qk_l2norm_in_kernel>},
    {"no safe gate", without_flag<&Problem::safe_gate>},
    {"no gate", without_gate},
    {"no logits", without_logits},
    {"default scale", without_scale},
    {"no decay", no_decay},
    {"half writes", half_writes},
    {"plain v", plain_values<'v'>},
    {"plain k", plain_values<'k'>},
    {"plain q", plain_values<'q'>},
    {"plain g", plain_values<'g'>},
});

}  // namespace

std::span<const Simplification> simplifications() { return kSimplifications; }

}  // namespace kda::harness
