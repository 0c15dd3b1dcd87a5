#pragma once

#include "cuda/simt/executor.hpp"
#include "reference/types/dtype.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace kda::cuda::device {
inline namespace cpu {

namespace detail {

/// .ftz: subnormal numbers count as zero.
inline float flush(float x) { return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; }

}  // namespace detail

/// a * b + c, rounded once.
inline float fma_rn(float a, float b, float c) { return std::fma(a, b, c); }

/// Correctly rounded, without any contraction into a neighbouring operation.
inline float sqrt_rn(float x) { return std::sqrt(x); }
inline float div_rn(float a, float b) { return a / b; }

// The same for f64, and a product that no sum next to it can swallow into an fma.
inline double fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double mul_rn(double a, double b) { return a * b; }
inline double sqrt_rn(double x) { return std::sqrt(x); }
inline double div_rn(double a, double b) { return a / b; }

/// 2^x, to 2 ulp on a device (ex2.approx.ftz).
inline float ex2_approx(float x) {
  simt::count_special();
  return detail::flush(std::exp2(detail::flush(x)));
}

/// 1 / x, to 1 ulp on a device (rcp.approx.ftz).
inline float rcp_approx(float x) {
  simt::count_special();
  return detail::flush(1.0F / detail::flush(x));
}

/// 1 / sqrt(x), to 2 ulp on a device (rsqrt.approx.ftz).
inline float rsqrt_approx(float x) {
  simt::count_special();
  return 1.0F / std::sqrt(detail::flush(x));
}

inline float widen(float x) { return x; }
inline float widen(Bf16 x) { return to_float(x); }
inline float widen(F16 x) { return to_float(x); }

/// Round to nearest even.
template <class T>
T narrow(float x);
template <>
inline float narrow<float>(float x) {
  return x;
}
template <>
inline Bf16 narrow<Bf16>(float x) {
  return to_bf16(x);
}
template <>
inline F16 narrow<F16>(float x) {
  return to_f16(x);
}

/// Two rounded values in one word, `low` in the lower half.
inline std::uint32_t pack_bf16(float low, float high) {
  return std::uint32_t{to_bf16(low).bits} | std::uint32_t{to_bf16(high).bits} << 16;
}
inline std::uint32_t pack_f16(float low, float high) {
  return std::uint32_t{to_f16(low).bits} | std::uint32_t{to_f16(high).bits} << 16;
}

/// x, of which the compiler knows nothing any more: what is computed from it is computed again
/// instead of being kept in registers.
inline std::uint32_t opaque(std::uint32_t x) { return x; }

inline std::uint32_t float_bits(float x) { return kda::detail::bits_of(x); }
inline float bits_float(std::uint32_t x) { return kda::detail::float_of(x); }
inline std::uint64_t double_bits(double x) { return std::bit_cast<std::uint64_t>(x); }
inline double bits_double(std::uint64_t x) { return std::bit_cast<double>(x); }

}  // namespace cpu
}  // namespace kda::cuda::device
