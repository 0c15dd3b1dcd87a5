#pragma once

// Vectors of KDA_REAL, f64 or f32, for the sources that are compiled once per instruction set, with
// as many elements as KDA_FAST_LANES of f64. The vector type is the compiler's own, so that the
// same source becomes SSE2, AVX2 or AVX-512 without intrinsics; a * b + c contracts to one fused
// instruction where there is one. To be included by such sources only. Everything here has internal
// linkage and nothing of the standard library is used: an inline function compiled with AVX-512
// could be the copy that the linker keeps for the whole program.

namespace kda::reference {
namespace {

using Real = KDA_REAL;

inline constexpr int kLanes = KDA_FAST_LANES * (8 / int{sizeof(Real)});

/// Unsigned integer of the size of a Real.
template <class Float>
struct BitsOf;
template <>
struct BitsOf<double> {
  using Type = unsigned long long;
};
template <>
struct BitsOf<float> {
  using Type = unsigned;
};

using Vec [[gnu::vector_size(kLanes * sizeof(Real))]] = Real;
using Bits [[gnu::vector_size(kLanes * sizeof(Real))]] = BitsOf<Real>::Type;

[[maybe_unused]] inline Vec load(const Real* from) {
  Vec x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

[[maybe_unused]] inline void store(Vec x, Real* to) { __builtin_memcpy(to, &x, sizeof x); }

[[maybe_unused]] inline Vec splat(Real x) { return Vec{} + x; }

[[maybe_unused]] inline Real sum(Vec x) {
  Real total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += x[lane];
  return total;
}

[[maybe_unused]] inline Vec magnitude(Vec x) { return x < 0 ? -x : x; }

[[maybe_unused]] inline Vec root(Vec x) {
  Real lanes[kLanes];  // an array, which the compiler makes one instruction of
  store(x, lanes);
  for (Real& lane : lanes) lane = static_cast<Real>(__builtin_sqrt(lane));
  return load(lanes);
}

/// What exp needs to know of a format.
template <class Float>
struct ExpConstants;
template <>
struct ExpConstants<double> {
  static constexpr double kRound = 0x1.8p52;  ///< adding it leaves an integer in the low bits
  static constexpr int kMantissa = 52;
  static constexpr unsigned long long kOne = 0x3FF0000000000000ULL;  ///< bits of 1
  static constexpr double kLeast = -750;  ///< beyond both ends the result is 0 or inf already
  static constexpr double kMost = 720;
  static constexpr double kLn2 = 0x1.62e42feep-1;  ///< ln 2 in two parts; this one is short, so
  static constexpr double kLn2Rest = 0x1.a39ef35793c76p-33;  ///< that n times it is exact
  static constexpr int kFirst = 0;                           ///< first term of kTaylor
};
template <>
struct ExpConstants<float> {
  static constexpr float kRound = 0x1.8p23F;
  static constexpr int kMantissa = 23;
  static constexpr unsigned kOne = 0x3F800000U;
  static constexpr float kLeast = -104;
  static constexpr float kMost = 89;
  static constexpr float kLn2 = 0x1.62e4p-1F;
  static constexpr float kLn2Rest = 0x1.7f7d1cp-20F;
  static constexpr int kFirst = 6;
};

/// 1/13!, 1/12!, ... 1/0!: on |r| <= ln(2)/2 the next term of e^r is below 5e-18; from 1/7! on,
/// below 6e-9.
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

/// 2^n for an integer |n| below the largest exponent.
[[maybe_unused]] inline Vec power_of_two(Vec n) {
  using C = ExpConstants<Real>;
  const Bits integer = reinterpret_cast<Bits>(n + C::kRound) << C::kMantissa;
  return reinterpret_cast<Vec>(integer + C::kOne);
}

/// e^x to about one unit in the last place; e^0 = 1, e^-inf = 0, NaN stays.
[[maybe_unused]] inline Vec exp(Vec x) {
  using C = ExpConstants<Real>;
  x = x < C::kLeast ? splat(C::kLeast) : x;
  x = x > C::kMost ? splat(C::kMost) : x;
  const Vec n = (x * static_cast<Real>(0x1.71547652b82fep0) + C::kRound) - C::kRound;
  const Vec r = (x - n * C::kLn2) - n * C::kLn2Rest;
  Vec y = splat(static_cast<Real>(kTaylor[C::kFirst]));
  for (int i = C::kFirst + 1; i < 14; ++i) y = y * r + static_cast<Real>(kTaylor[i]);
  // Two factors, since 2^n itself may be subnormal.
  const Vec half = (n * static_cast<Real>(0.5) + C::kRound) - C::kRound;
  return y * power_of_two(half) * power_of_two(n - half);
}

}  // namespace
}  // namespace kda::reference
