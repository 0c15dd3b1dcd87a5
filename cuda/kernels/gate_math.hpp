#pragma once

#include "cuda/device/primitives.hpp"

// The functions of KDA's gates in f32, to a few ulp over their whole range. The fast hardware
// functions alone are not enough: ex2(x log2e) loses 5e-6 at x = -80, log(1 + e^y) everything below
// y = -17, and a decay near 1 every digit of its distance from 1.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

KDA_DEVICE float absolute(float x) { return x < 0.F ? -x : x; }

/// e^x: 0 below -103, infinite above 88.8.
KDA_DEVICE float exp_accurate(float x) {
  constexpr float kLog2e = 1.44269502F;
  constexpr float kLog2eRest = 1.92596303e-8F;  // log2(e) - kLog2e
  constexpr float kLn2 = 0.693147182F;
  const float t = x * kLog2e;
  // What t lost: its own rounding, and the rest of log2(e).
  const float rest = device::fma_rn(x, kLog2e, -t) + x * kLog2eRest;
  const float y = device::ex2_approx(t);
  if (x < -103.F) return 0.F;  // also -inf, where `rest` is NaN
  if (t >= 128.F) return y;    // infinite
  return device::fma_rn(y, rest * kLn2, y);
}

/// e^x - 1 for -0.7 < x <= 0: Taylor's series, whose next term is below 2e-8 of the sum.
KDA_DEVICE float expm1_small(float x) {
  float p = 1.F / 3628800.F;
  p = device::fma_rn(p, x, 1.F / 362880.F);
  p = device::fma_rn(p, x, 1.F / 40320.F);
  p = device::fma_rn(p, x, 1.F / 5040.F);
  p = device::fma_rn(p, x, 1.F / 720.F);
  p = device::fma_rn(p, x, 1.F / 120.F);
  p = device::fma_rn(p, x, 1.F / 24.F);
  p = device::fma_rn(p, x, 1.F / 6.F);
  p = device::fma_rn(p, x, 0.5F);
  p = device::fma_rn(p, x, 1.F);
  return p * x;
}

/// 1 / (1 + e^-x).
KDA_DEVICE float sigmoid(float x) { return device::div_rn(1.F, 1.F + exp_accurate(-x)); }

/// log(1 + e^y) = max(y, 0) + log(1 + t), t = e^-|y|; log(1 + t) = t P(t) with a minimax P on
/// [0, 1], 2.2e-7 relative.
KDA_DEVICE float softplus(float y) {
  const float t = exp_accurate(-absolute(y));
  float p = -0.00857467577F;
  p = device::fma_rn(p, t, 0.0442141928F);
  p = device::fma_rn(p, t, -0.107853681F);
  p = device::fma_rn(p, t, 0.177570239F);
  p = device::fma_rn(p, t, -0.244996116F);
  p = device::fma_rn(p, t, 0.332761765F);
  p = device::fma_rn(p, t, -0.499974489F);
  p = device::fma_rn(p, t, 0.999999821F);
  return device::fma_rn(t, p, y > 0.F ? y : 0.F);
}

/// e^A_log above which it would be infinite; no finite decay tells the difference.
inline constexpr float kMaxALog = 88.F;

/// -e^A_log softplus(y). Far below 0 softplus is e^y, and one exponential of the sum avoids
/// infinity times 0.
KDA_DEVICE float softplus_gate(float A_log, float y) {
  if (y < -15.F) return -exp_accurate(A_log + y);
  return -exp_accurate(A_log < kMaxALog ? A_log : kMaxALog) * softplus(y);
}

/// bound sigmoid(e^A_log y).
KDA_DEVICE float bounded_gate(float A_log, float bound, float y) {
  return bound * sigmoid(exp_accurate(A_log < kMaxALog ? A_log : kMaxALog) * y);
}

// The factor e^g of a state is applied as b S + a S, so that factors near 1 keep their distance
// from 1. One float holds both: (a, b) = (e^g - 1, 1) where g > -0.7, and (e^g, 0) elsewhere; b is
// the sign bit, since e^g - 1 <= -0 and e^g >= +0.

KDA_DEVICE float decay_code(float g) {
  if (g > -0.7F && g <= 0.F) {
    return device::bits_float(device::float_bits(expm1_small(g)) | 0x80000000U);
  }
  return exp_accurate(g);
}

KDA_DEVICE float decayed(float code, float s) {
  const float kept = (device::float_bits(code) >> 31) != 0 ? s : 0.F;
  return device::fma_rn(code, s, kept);
}

/// The same plus x, with one rounding more than the state's own only where x is large.
KDA_DEVICE float decayed_plus(float code, float s, float x) {
  const float kept = (device::float_bits(code) >> 31) != 0 ? s : 0.F;
  return kept + device::fma_rn(code, s, x);
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
