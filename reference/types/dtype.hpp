#pragma once

#include <cstdint>
#include <cstring>

// Storage types of tensors. Shared by host code and kernels: this header needs nothing of CUDA's,
// and the two-byte types are our own, so that one struct serves g++, clang and nvcc alike.

#if defined(__CUDACC__)
#define KDA_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define KDA_HOST_DEVICE inline
#endif

namespace kda {

/// Element type of a tensor, of a dataset or of a kernel buffer.
enum class Dtype : std::uint8_t { kBf16, kF16, kF32, kF64, kI32, kI64 };

/// Bytes of one element.
[[nodiscard]] constexpr std::int64_t size_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::kBf16:
    case Dtype::kF16: return 2;
    case Dtype::kF32:
    case Dtype::kI32: return 4;
    case Dtype::kF64:
    case Dtype::kI64: return 8;
  }
  return 0;
}

/// "bf16", "f16", "f32", "f64", "i32", "i64".
[[nodiscard]] constexpr const char* name(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::kBf16: return "bf16";
    case Dtype::kF16: return "f16";
    case Dtype::kF32: return "f32";
    case Dtype::kF64: return "f64";
    case Dtype::kI32: return "i32";
    case Dtype::kI64: return "i64";
  }
  return "?";
}

[[nodiscard]] constexpr bool is_float(Dtype dtype) noexcept {
  return dtype != Dtype::kI32 && dtype != Dtype::kI64;
}

/// bfloat16: sign, 8 exponent bits (bias 127), 7 mantissa bits.
struct alignas(2) Bf16 {
  std::uint16_t bits;
};

/// IEEE binary16.
struct alignas(2) F16 {
  std::uint16_t bits;
};

namespace detail {

KDA_HOST_DEVICE std::uint32_t bits_of(float x) {
  std::uint32_t u = 0;
  std::memcpy(&u, &x, sizeof u);
  return u;
}

KDA_HOST_DEVICE float float_of(std::uint32_t u) {
  float x = 0;
  std::memcpy(&x, &u, sizeof x);
  return x;
}

/// Float nearest below in magnitude, with the last bit set when x was not representable: rounding
/// the result once more, to a format at least two bits narrower, equals rounding x once.
inline float round_to_odd(double x) {
  auto near = static_cast<float>(x);
  if (static_cast<double>(near) == x || near != near) return near;
  std::uint32_t u = bits_of(near);
  const double magnitude = x < 0 ? -x : x;
  const double near_magnitude = near < 0 ? -static_cast<double>(near) : static_cast<double>(near);
  if (near_magnitude > magnitude) --u;
  return float_of(u | 1U);
}

}  // namespace detail

KDA_HOST_DEVICE float to_float(Bf16 x) {
  return detail::float_of(static_cast<std::uint32_t>(x.bits) << 16);
}

/// Round to nearest even; every NaN becomes 0x7FFF, as cvt.rn.bf16.f32 has it.
KDA_HOST_DEVICE Bf16 to_bf16(float x) {
  const std::uint32_t u = detail::bits_of(x);
  if ((u & 0x7FFFFFFFU) > 0x7F800000U) return Bf16{0x7FFF};
  return Bf16{static_cast<std::uint16_t>((u + 0x7FFFU + ((u >> 16) & 1U)) >> 16)};
}

KDA_HOST_DEVICE float to_float(F16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1FU;
  const std::uint32_t mantissa = x.bits & 0x3FFU;
  if (exponent == 0x1FU) return detail::float_of(sign | 0x7F800000U | (mantissa << 13));
  if (exponent != 0) return detail::float_of(sign | ((exponent + 112U) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8F;  // 2^-24
  return detail::float_of(sign | detail::bits_of(magnitude));
}

/// Round to nearest even, overflow to infinity; every NaN becomes 0x7FFF, as cvt.rn.f16.f32 has it.
KDA_HOST_DEVICE F16 to_f16(float x) {
  const std::uint32_t u = detail::bits_of(x);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000U);
  const std::uint32_t magnitude = u & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return F16{0x7FFF};
  if (magnitude >= 0x477FF000U) return F16{static_cast<std::uint16_t>(sign | 0x7C00U)};
  if (magnitude < 0x38800000U) {  // below 2^-14: a multiple of 2^-24, rounded by adding 2^-1
    const float shifted = detail::float_of(magnitude) + 0.5F;
    return F16{static_cast<std::uint16_t>(sign | (detail::bits_of(shifted) - 0x3F000000U))};
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return F16{static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)))};
}

/// From f64 with one rounding (not f64 -> f32 -> 16 bits).
inline Bf16 to_bf16(double x) { return to_bf16(detail::round_to_odd(x)); }
inline F16 to_f16(double x) { return to_f16(detail::round_to_odd(x)); }

}  // namespace kda
