#include "tests/cuda/layout_check.hpp"

#include "reference/types/dtype.hpp"

#include <cstddef>

namespace kda::cuda::layout {
namespace {

// CuTe's layouts map (lane, value) to an index of the tile, column-major.

/// Shape ((4,8),(2,2,2)), stride ((32,1),(16,8,128)): m + 16 k.
unsigned a_index(unsigned lane, unsigned value) {
  return lane % 4 * 32 + lane / 4 + value % 2 * 16 + value / 2 % 2 * 8 + value / 4 * 128;
}

/// Shape ((4,8),(2,2)), stride ((16,1),(8,64)): n + 8 k.
unsigned b_index(unsigned lane, unsigned value) {
  return lane % 4 * 16 + lane / 4 + value % 2 * 8 + value / 2 * 64;
}

/// Shape ((4,8),(2,2)), stride ((32,1),(16,8)): m + 16 n.
unsigned d_index(unsigned lane, unsigned value) {
  return lane % 4 * 32 + lane / 4 + value % 2 * 16 + value / 2 * 8;
}

std::uint32_t half_bits(Half half, float x) {
  return half == Half::kBf16 ? to_bf16(x).bits : to_f16(x).bits;
}

// Numbers up to 256 are exact in bf16. A's are 1..256, B's 1..128.
float a_number(unsigned m, unsigned k) { return static_cast<float>(1 + m + 16 * k); }
float b_number(unsigned k, unsigned n) { return static_cast<float>(1 + n + 8 * k); }

float a_element(unsigned run, unsigned index) {
  if (run < 256) return index == run ? 1.0F : 0.0F;
  return a_number(index % 16, index / 16);
}

float b_element(unsigned run, unsigned index) {
  if (run >= 256) return index == run - 256 ? 1.0F : 0.0F;
  return b_number(index / 8, index % 8);
}

float d_element(unsigned run, unsigned m, unsigned n) {
  if (run < 256) return m == run % 16 ? b_number(run / 16, n) : 0.0F;
  const unsigned one = run - 256;
  return n == one % 8 ? a_number(m, one / 8) : 0.0F;
}

std::string wrong(const char* what, unsigned run, unsigned lane, unsigned value, double got,
                  double want) {
  return std::string(what) + " run " + std::to_string(run) + " lane " + std::to_string(lane) +
         " value " + std::to_string(value) + ": got " + std::to_string(got) + ", want " +
         std::to_string(want);
}

}  // namespace

MmaOperandSet mma_operands(Half half) {
  MmaOperandSet set;
  set.a.resize(MmaOperandSet::kRuns * 32 * 4);
  set.b.resize(MmaOperandSet::kRuns * 32 * 2);
  for (unsigned run = 0; run < MmaOperandSet::kRuns; ++run) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      const std::size_t at = run * 32 + lane;
      for (unsigned value = 0; value < 8; ++value) {
        const float x = a_element(run, a_index(lane, value));
        set.a[at * 4 + value / 2] |= half_bits(half, x) << (value % 2 * 16);
      }
      for (unsigned value = 0; value < 4; ++value) {
        const float x = b_element(run, b_index(lane, value));
        set.b[at * 2 + value / 2] |= half_bits(half, x) << (value % 2 * 16);
      }
    }
  }
  return set;
}

std::string check_mma(const std::vector<float>& d) {
  if (d.size() != MmaOperandSet::kRuns * 32 * 4) return "wrong size";
  for (unsigned run = 0; run < MmaOperandSet::kRuns; ++run) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned value = 0; value < 4; ++value) {
        const unsigned index = d_index(lane, value);
        const float want = d_element(run, index % 16, index / 16);
        const float got = d[(run * 32 + lane) * 4 + value];
        if (got != want) return wrong("mma", run, lane, value, got, want);
      }
    }
  }
  return {};
}

std::vector<std::uint16_t> ldmatrix_rows() {
  std::vector<std::uint16_t> rows(32 * 8);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(0x100 + i);
  return rows;
}

std::string check_ldmatrix(unsigned matrices, bool transposed,
                           const std::vector<std::uint32_t>& words) {
  if (words.size() != 32 * std::size_t{matrices}) return "wrong size";
  const auto rows = ldmatrix_rows();
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned m = 0; m < matrices; ++m) {
      for (unsigned half = 0; half < 2; ++half) {
        // In bits. Plain: shape (32,(32,N)), stride (32,(1,1024)). Transposed:
        // shape ((4,8),(16,2,N)), stride ((256,16),(1,128,1024)).
        const unsigned bit = transposed ? lane % 4 * 256 + lane / 4 * 16 + half * 128 + m * 1024
                                        : lane * 32 + half * 16 + m * 1024;
        const unsigned want = rows[bit / 16];
        const unsigned got = words[lane * matrices + m] >> (half * 16) & 0xFFFFU;
        if (got != want) return wrong("ldmatrix", m, lane, half, got, want);
      }
    }
  }
  return {};
}

MovmatrixOperandSet movmatrix_operands() {
  MovmatrixOperandSet set;
  set.in.resize(MovmatrixOperandSet::kRuns * 32);
  for (unsigned run = 0; run < MovmatrixOperandSet::kRuns; ++run) {
    // Element (run / 8, run % 8): two to a lane, four lanes to a row.
    set.in[run * 32 + run / 2] = (0x1000U + run) << (run % 2 * 16);
  }
  return set;
}

std::string check_movmatrix(const std::vector<std::uint32_t>& words) {
  if (words.size() != MovmatrixOperandSet::kRuns * 32) return "wrong size";
  for (unsigned run = 0; run < MovmatrixOperandSet::kRuns; ++run) {
    const unsigned moved = run % 8 * 8 + run / 8;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const std::uint32_t want =
          lane == moved / 2 ? (0x1000U + run) << (moved % 2 * 16) : std::uint32_t{0};
      const std::uint32_t got = words[run * 32 + lane];
      if (got != want) return wrong("movmatrix", run, lane, 0, got, want);
    }
  }
  return {};
}

}  // namespace kda::cuda::layout
