#pragma once

#include "cuda/device/dev/memory.cuh"
#include "cuda/device/flavour.hpp"
#include "cuda/device/pointers.hpp"

#include <cstdint>

namespace kda::cuda::device {
inline namespace dev {

template <class T>
KDA_DEVICE void ldmatrix(std::uint32_t (&r)[1], Shared<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(detail::shared_address(row.raw))
               : "memory");
}

template <class T>
KDA_DEVICE void ldmatrix(std::uint32_t (&r)[2], Shared<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(detail::shared_address(row.raw))
               : "memory");
}

template <class T>
KDA_DEVICE void ldmatrix(std::uint32_t (&r)[4], Shared<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::shared_address(row.raw))
               : "memory");
}

template <class T>
KDA_DEVICE void ldmatrix_trans(std::uint32_t (&r)[1], Shared<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(detail::shared_address(row.raw))
               : "memory");
}

template <class T>
KDA_DEVICE void ldmatrix_trans(std::uint32_t (&r)[2], Shared<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(detail::shared_address(row.raw))
               : "memory");
}

template <class T>
KDA_DEVICE void ldmatrix_trans(std::uint32_t (&r)[4], Shared<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(detail::shared_address(row.raw))
               : "memory");
}

KDA_DEVICE std::uint32_t movmatrix_trans(std::uint32_t pair) {
  std::uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

KDA_DEVICE void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

KDA_DEVICE void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                 std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace dev
}  // namespace kda::cuda::device
