#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Operands for the layout kernels, and what must come out. The layouts are those that CUTLASS
// states (cute/atom/mma_traits_sm80.hpp and copy_traits_sm75.hpp, as shapes and strides), so that
// they do not share a mistake with the executor or with an asm string.

namespace kda::cuda::layout {

enum class Half : std::uint8_t { kBf16, kF16 };

/// Runs 0..255: A is 1 at one element, B holds 128 different numbers. Runs 256..383: B is 1 at one
/// element, A holds 256 different numbers. Together they fix where every element of A, B, D lies.
struct MmaOperandSet {
  static constexpr int kRuns = 256 + 128;
  std::vector<std::uint32_t> a;  ///< [kRuns][32][4]
  std::vector<std::uint32_t> b;  ///< [kRuns][32][2]
};
[[nodiscard]] MmaOperandSet mma_operands(Half half);

/// Each check returns what is wrong, or nothing.
[[nodiscard]] std::string check_mma(const std::vector<float>& d);

/// 256 different elements, [32][8].
[[nodiscard]] std::vector<std::uint16_t> ldmatrix_rows();
[[nodiscard]] std::string check_ldmatrix(unsigned matrices, bool transposed,
                                         const std::vector<std::uint32_t>& words);

/// One run for each of the 64 elements, which alone is not 0.
struct MovmatrixOperandSet {
  static constexpr int kRuns = 64;
  std::vector<std::uint32_t> in;  ///< [kRuns][32]
};
[[nodiscard]] MovmatrixOperandSet movmatrix_operands();
[[nodiscard]] std::string check_movmatrix(const std::vector<std::uint32_t>& words);

}  // namespace kda::cuda::layout
