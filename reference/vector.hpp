#pragma once

// Vectors of f64 for the sources that are compiled once per instruction set, with KDA_FAST_LANES
// elements each. The vector type is the compiler's own, so that the same source becomes SSE2, AVX2
// or AVX-512 without intrinsics; a * b + c contracts to one fused instruction where there is one.
// To be included by such sources only. Everything here has internal linkage and nothing of the
// standard library is used: an inline function compiled with AVX-512 could be the copy that the
// linker keeps for the whole program.

namespace kda::reference {
namespace {

inline constexpr int kLanes = KDA_FAST_LANES;

using Vec [[gnu::vector_size(kLanes * 8)]] = double;
using Bits [[gnu::vector_size(kLanes * 8)]] = unsigned long long;

[[maybe_unused]] inline Vec load(const double* from) {
  Vec x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

[[maybe_unused]] inline void store(Vec x, double* to) { __builtin_memcpy(to, &x, sizeof x); }

[[maybe_unused]] inline Vec splat(double x) { return Vec{} + x; }

[[maybe_unused]] inline double sum(Vec x) {
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += x[lane];
  return total;
}

/// Adding it rounds to an integer and leaves that integer in the low bits.
inline constexpr double kRound = 0x1.8p52;

/// 1/13!, 1/12!, ... 1/0!: on |r| <= ln(2)/2 the next term of e^r is below 5e-18.
inline constexpr double kTaylor[14] = {1.0 / 6227020800,
                                       1.0 / 479001600,
                                       1.0 / 39916800,
                                       1.0 / 3628800,
                                       1.0 / 362880,
                                       1.0 / 40320,
                                       1.0 / 5040,
                                       1.0 / 720,
                                       1.0 / 120,
                                       1.0 / 24,
                                       1.0 / 6,
                                       1.0 / 2,
                                       1.0,
                                       1.0};

/// 2^n for an integer |n| <= 1022.
[[maybe_unused]] inline Vec power_of_two(Vec n) {
  const Bits integer = reinterpret_cast<Bits>(n + kRound) << 52;
  return reinterpret_cast<Vec>(integer + 0x3FF0000000000000ULL);
}

/// e^x to about one unit in the last place; e^0 = 1, e^-inf = 0, NaN stays.
[[maybe_unused]] inline Vec exp(Vec x) {
  x = x < -750.0 ? splat(-750.0) : x;  // beyond both ends the result is 0 or inf already
  x = x > 720.0 ? splat(720.0) : x;
  const Vec n = (x * 0x1.71547652b82fep0 + kRound) - kRound;
  // ln 2 in two parts; the first is short, so that n times it is exact.
  const Vec r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  Vec y = splat(kTaylor[0]);
  for (int i = 1; i < 14; ++i) y = y * r + kTaylor[i];
  const Vec half = (n * 0.5 + kRound) - kRound;  // two factors, since 2^n itself may be subnormal
  return y * power_of_two(half) * power_of_two(n - half);
}

}  // namespace
}  // namespace kda::reference
