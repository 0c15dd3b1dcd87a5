#pragma once

#include "cuda/device/flavour.hpp"
#include "reference/types/dtype.hpp"

#include <cstdint>

namespace kda::cuda::device {
inline namespace dev {

KDA_DEVICE float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }

KDA_DEVICE float sqrt_rn(float x) { return __fsqrt_rn(x); }
KDA_DEVICE float div_rn(float a, float b) { return __fdiv_rn(a, b); }

KDA_DEVICE double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }
KDA_DEVICE double mul_rn(double a, double b) { return __dmul_rn(a, b); }
KDA_DEVICE double sqrt_rn(double x) { return __dsqrt_rn(x); }
KDA_DEVICE double div_rn(double a, double b) { return __ddiv_rn(a, b); }

KDA_DEVICE float ex2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

KDA_DEVICE float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

KDA_DEVICE float rsqrt_approx(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

KDA_DEVICE float widen(float x) { return x; }
KDA_DEVICE float widen(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
KDA_DEVICE float widen(F16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

template <class T>
KDA_DEVICE T narrow(float x);
template <>
KDA_DEVICE float narrow<float>(float x) {
  return x;
}
template <>
KDA_DEVICE Bf16 narrow<Bf16>(float x) {
  Bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
template <>
KDA_DEVICE F16 narrow<F16>(float x) {
  F16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

KDA_DEVICE std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

KDA_DEVICE std::uint32_t pack_f16(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

KDA_DEVICE std::uint32_t opaque(std::uint32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}

KDA_DEVICE std::uint32_t float_bits(float x) { return __float_as_uint(x); }
KDA_DEVICE float bits_float(std::uint32_t x) { return __uint_as_float(x); }
KDA_DEVICE std::uint64_t double_bits(double x) {
  return static_cast<std::uint64_t>(__double_as_longlong(x));
}
KDA_DEVICE double bits_double(std::uint64_t x) {
  return __longlong_as_double(static_cast<long long>(x));
}

}  // namespace dev
}  // namespace kda::cuda::device
