#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"
#include "reference/types/dtype.hpp"

#include <bit>
#include <cstring>

// Matrix instructions with the lane layouts of the PTX ISA. An 8x8 matrix of 16-bit elements has
// one row of 16 bytes per supplying lane, and lies in registers as one word per lane: lane l holds
// elements 2(l%4) and 2(l%4)+1 of row l/4.

namespace kda::cuda::simt {
namespace {

constexpr std::uint32_t kAllLanes = 0xFFFFFFFFU;

void require_full_warp(Site site) {
  Thread& thread = current();
  const std::uint32_t lanes = thread.block->warps[thread.warp]->lanes;
  if (lanes != kAllLanes) {
    fail(thread, FaultKind::kBadMask, site,
         "matrix instructions need all 32 lanes, the warp has 0x%08x", lanes);
  }
}

const MatrixLoad& load_of(void* const* operands, unsigned lane) {
  return *static_cast<const MatrixLoad*>(operands[lane]);
}

std::uint32_t element(std::uint32_t pair, unsigned which) { return pair >> (which * 16) & 0xFFFFU; }

void count_ldmatrix(void* const* operands, unsigned matrices, Counters& counters) {
  ++counters.ldmatrix;
  WarpAccess rows;
  for (unsigned lane = 0; lane < matrices * 8; ++lane) {
    rows.lanes |= 1U << lane;
    rows.bytes[lane] = 16;
    rows.address[lane] = reinterpret_cast<std::uintptr_t>(load_of(operands, lane).address);
  }
  count_shared(rows, 16, counters.shared_load);  // 8 rows, one matrix, at a time
}

template <unsigned kMatrices, bool kTransposed>
void do_ldmatrix(void* const* operands, std::uint32_t /*mask*/, Thread& last) {
  count_ldmatrix(operands, kMatrices, last.block->counters);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    std::uint32_t* result = static_cast<MatrixLoad*>(operands[lane])->result;
    for (unsigned m = 0; m < kMatrices; ++m) {
      if constexpr (kTransposed) {
        const unsigned row = lane % 4 * 2;
        const unsigned column = lane / 4;
        const std::uint32_t* upper = load_of(operands, m * 8 + row).row;
        const std::uint32_t* lower = load_of(operands, m * 8 + row + 1).row;
        result[m] = element(upper[column / 2], column % 2) | element(lower[column / 2], column % 2)
                                                                 << 16;
      } else {
        result[m] = load_of(operands, m * 8 + lane / 4).row[lane % 4];
      }
    }
  }
}

template <bool kTransposed>
CollectiveWork ldmatrix_work(unsigned matrices) {
  switch (matrices) {
    case 1: return &do_ldmatrix<1, kTransposed>;
    case 2: return &do_ldmatrix<2, kTransposed>;
    default: return &do_ldmatrix<4, kTransposed>;
  }
}

void do_movmatrix(void* const* operands, std::uint32_t /*mask*/, Thread& last) {
  ++last.block->counters.movmatrix;
  std::uint32_t in[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    in[lane] = *static_cast<const std::uint32_t*>(operands[lane]);
  }
  const auto at = [&](unsigned row, unsigned column) {
    return element(in[row * 4 + column / 2], column % 2);
  };
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const unsigned row = lane / 4;
    const unsigned column = lane % 4 * 2;
    *static_cast<std::uint32_t*>(operands[lane]) = at(column, row) | at(column + 1, row) << 16;
  }
}

float widen(std::uint32_t bits, MmaType type) {
  const auto half = static_cast<std::uint16_t>(bits);
  return type == MmaType::kBf16 ? to_float(Bf16{half}) : to_float(F16{half});
}

/// Eight f32 at once: GCC does not vectorise the plain loop well.
using Row [[gnu::vector_size(32)]] = float;

/// 16x8x16 with f32 sums in the order of k. Tensor cores add in another order and truncate, so
/// results on a device differ in the last bits.
template <MmaType kType>
void do_mma(void* const* operands, std::uint32_t /*mask*/, Thread& last) {
  ++last.block->counters.mma;
  float a[16][16];
  float b[16][8];
  float c[16][8];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const auto& o = *static_cast<const MmaOperands*>(operands[lane]);
    const unsigned group = lane / 4;
    const unsigned pair = lane % 4 * 2;
    for (unsigned e = 0; e < 2; ++e) {
      for (unsigned i = 0; i < 4; ++i) {
        a[group + i % 2 * 8][pair + i / 2 * 8 + e] = widen(element(o.a[i], e), kType);
      }
      for (unsigned i = 0; i < 2; ++i) {
        b[pair + i * 8 + e][group] = widen(element(o.b[i], e), kType);
        c[group + i * 8][pair + e] = o.d[i * 2 + e];
      }
    }
  }
  for (unsigned row = 0; row < 16; ++row) {
    Row sum;
    std::memcpy(&sum, c[row], sizeof sum);
    for (unsigned k = 0; k < 16; ++k) {
      Row terms;
      std::memcpy(&terms, b[k], sizeof terms);
      sum += a[row][k] * terms;
    }
    std::memcpy(c[row], &sum, sizeof sum);
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    float* d = static_cast<MmaOperands*>(operands[lane])->d;
    const unsigned group = lane / 4;
    const unsigned pair = lane % 4 * 2;
    d[0] = c[group][pair];
    d[1] = c[group][pair + 1];
    d[2] = c[group + 8][pair];
    d[3] = c[group + 8][pair + 1];
  }
}

}  // namespace

void ldmatrix(MatrixLoad& lane, unsigned matrices, bool transposed, Site site) {
  require_full_warp(site);
  if (visit(*current().block, Primitive::kLdmatrix, site) != nullptr) transposed = !transposed;
  const CollectiveWork work =
      transposed ? ldmatrix_work<true>(matrices) : ldmatrix_work<false>(matrices);
  collective(Wait::kLdmatrix, kAllLanes, &lane, work, site);
}

std::uint32_t movmatrix(std::uint32_t row_pair, Site site) {
  require_full_warp(site);
  if (visit(*current().block, Primitive::kMovmatrix, site) != nullptr) return row_pair;
  collective(Wait::kMovmatrix, kAllLanes, &row_pair, &do_movmatrix, site);
  return row_pair;
}

void mma_m16n8k16(MmaOperands& lane, MmaType type, Site site) {
  require_full_warp(site);
  const std::uint32_t swapped[4] = {lane.a[0], lane.a[2], lane.a[1], lane.a[3]};
  if (const Mutation* m = visit(*current().block, Primitive::kMma, site)) {
    if (m->injected == Injected::kDrop) return;
    lane.a = swapped;
  }
  const CollectiveWork work =
      type == MmaType::kBf16 ? &do_mma<MmaType::kBf16> : &do_mma<MmaType::kF16>;
  collective(Wait::kMma, kAllLanes, &lane, work, site);
}

}  // namespace kda::cuda::simt
