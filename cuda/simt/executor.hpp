#pragma once

#include "cuda/simt/options.hpp"
#include "cuda/simt/site.hpp"
#include "cuda/simt/warp_traffic.hpp"

#include <cstddef>
#include <cstdint>

// What the CPU bodies of the primitives (cuda/device/cpu) call. All of it works on the kernel
// thread that is running; none of it may be called outside a launch. Data itself is moved in the
// primitives' headers, which TSan instruments, so that an access is judged under the identity of
// the thread that makes it.

namespace kda::cuda::simt {

[[nodiscard]] Dim3 thread_index();
[[nodiscard]] Dim3 block_index();
[[nodiscard]] Dim3 block_extent();
[[nodiscard]] Dim3 grid_extent();
/// Of the thread in its warp.
[[nodiscard]] unsigned lane();

// ---- Barriers.

/// __syncthreads: all threads of the block, from one source line.
void block_barrier(Site site);
/// bar.sync (wait) and bar.arrive of barriers 1..15; `threads` is a multiple of 32.
void named_barrier(int id, int threads, bool wait, Site site);
/// __syncwarp.
void warp_barrier(std::uint32_t mask, Site site);

// ---- Warp collectives.

enum class Shuffle : std::uint8_t { kIndex, kXor, kUp, kDown };

/// The value of the lane that `operand` names; past the warp's ends (up, down) one's own.
[[nodiscard]] std::uint64_t shuffle(Shuffle kind, std::uint64_t value, int operand,
                                    std::uint32_t mask, Site site);
/// Bit l is set when lane l of the mask has a true predicate.
[[nodiscard]] std::uint32_t ballot(bool predicate, std::uint32_t mask, Site site);

/// One lane's part of an ldmatrix: the row it supplied, and the words it gets.
struct MatrixLoad {
  std::uint32_t row[4];  ///< 16 bytes, read by the lane itself
  const void* address;   ///< where the row came from, for bank conflicts
  std::uint32_t result[4];
};
/// Judges the 16 bytes of a row before the lane reads them; the collective counts them.
void check_matrix_row(const void* row, Site site);
/// `matrices` is 1, 2 or 4; lanes 8m..8m+7 supply the rows of matrix m.
void ldmatrix(MatrixLoad& lane, unsigned matrices, bool transposed, Site site);
[[nodiscard]] std::uint32_t movmatrix(std::uint32_t row_pair, Site site);

enum class MmaType : std::uint8_t { kBf16, kF16 };

/// One lane's part of mma.m16n8k16: d += a b.
struct MmaOperands {
  float* d;                ///< 4
  const std::uint32_t* a;  ///< 4 pairs
  std::uint32_t b[2];
};
void mma_m16n8k16(MmaOperands& lane, MmaType type, Site site);

// ---- Memory.

/// The next dynamic array of this thread (every thread takes all, in one order).
[[nodiscard]] void* shared_dynamic(std::size_t bytes, std::size_t alignment, Site site);
/// The static array known by this key.
[[nodiscard]] void* shared_static(const void* key, std::size_t bytes, std::size_t alignment,
                                  Site site);

/// Judges and counts one lane's access before it is made. `kind` says where it should go. An atomic
/// on shared memory is a load and a store. Returns the address to use, which is `address` unless a
/// fault is injected here.
[[nodiscard]] void* access(Access kind, const void* address, unsigned bytes, Site site);

// ---- cp.async.

struct Copy {
  std::byte* destination;
  const std::byte* source;
  unsigned width;         ///< bytes written
  unsigned source_bytes;  ///< bytes read; the rest of the destination becomes 0
};
/// What becomes of a copy when it is issued.
enum class Issue : std::uint8_t {
  kLater,  ///< its data is moved at the wait
  kNow,    ///< its data is to be moved at once
  kNever,  ///< dropped by an injected fault
};
/// Registers a copy, which an injected fault may change.
[[nodiscard]] Issue issue_copy(Copy& copy, Site site);
void commit_copies();
/// A copy whose data is to be moved now, since its group is older than the `keep` newest; nullptr
/// when there is none left.
[[nodiscard]] const Copy* next_finished_copy(unsigned keep, Site site);

// ---- Counters without further effect.

void count_special();
void count_atomic();

}  // namespace kda::cuda::simt
