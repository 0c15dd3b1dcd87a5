#pragma once

#include "cuda/simt/counters.hpp"
#include "cuda/simt/executor.hpp"
#include "cuda/simt/fiber.hpp"
#include "cuda/simt/memory.hpp"
#include "cuda/simt/mutation.hpp"
#include "cuda/simt/options.hpp"
#include "cuda/simt/report.hpp"
#include "cuda/simt/shared_arena.hpp"
#include "cuda/simt/site.hpp"
#include "cuda/simt/warp_traffic.hpp"

#include <cstdint>
#include <memory>
#include <vector>

// State of the block that a worker runs. Private to the executor's own files.

namespace kda::cuda::simt {

struct Block;

/// What a thread can wait in.
enum class Wait : std::uint8_t {
  kNone,
  kBlockBarrier,
  kNamedBarrier,
  kWarpBarrier,
  kShuffle,
  kVote,
  kLdmatrix,
  kMovmatrix,
  kMma,
};

enum class ThreadState : std::uint8_t { kReady, kWaiting, kExited };

struct PendingCopy {
  Copy copy{};
  unsigned group = 0;
  bool moved = false;  ///< eager: the data is there, only the wait is missing
  Site site;
};

struct Thread {
  Context context;
  Block* block = nullptr;
  Dim3 index;
  unsigned number = 0;
  unsigned warp = 0;
  unsigned lane = 0;
  ThreadState state = ThreadState::kExited;

  Wait wait = Wait::kNone;
  int wait_barrier = 0;
  std::uint32_t wait_mask = 0;
  Site wait_site;

  unsigned arrays_taken = 0;
  unsigned copy_group = 0;
  std::vector<PendingCopy> copies;  ///< oldest first
  Copy finished{};
  alignas(16) std::byte nowhere[16] = {};  ///< what a dropped access reads and writes
  unsigned priority = 0;                   ///< within the warp
};

/// Lanes on their way through one collective. The last to arrive does the work for all.
struct Collective {
  std::uint32_t mask = 0;
  std::uint32_t arrived = 0;
  Wait kind = Wait::kNone;
  Site site;
  void* operands[kWarpSize] = {};
  unsigned phase = 0;
  char order_tags[2] = {};
};

struct Warp {
  std::uint32_t lanes = 0;  ///< that exist
  std::uint32_t ready = 0;  ///< that can run
  unsigned priority = 0;
  Collective collectives[kWarpSize];  ///< by the mask's lowest lane
  WarpTraffic traffic;
};

struct Barrier {
  unsigned expected = 0;
  unsigned arrived = 0;
  Site site;
  std::uint32_t lanes[kMaxWarps] = {};    ///< that have arrived
  std::uint32_t waiting[kMaxWarps] = {};  ///< of these, the ones that wait
  unsigned phase = 0;
  char order_tags[2] = {};
};

struct Block {
  Options options;
  LaunchConfig config;
  const Memory* memory = nullptr;
  Dim3 index;
  void (*body)(void*) = nullptr;
  void* body_argument = nullptr;

  Context worker;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<std::unique_ptr<Warp>> warps;
  Barrier barriers[16];
  SharedArena shared;
  std::size_t dynamic_bytes = 0;
  std::size_t static_bytes = 0;
  unsigned dynamic_arrays[SharedArena::kMaxArrays] = {};  ///< their numbers in `shared`
  unsigned dynamic_count = 0;

  unsigned exited = 0;
  unsigned cursor = 0;  ///< thread picked last
  std::uint64_t random_state = 1;
  unsigned until_preempt = 0;
  Counters counters;
  bool failed = false;
  Thread* overflowed = nullptr;  ///< whose stack is full
  Report report;
  char start_tag = 0;  ///< for TSan: worker before threads
  char end_tag = 0;    ///< threads before worker
};

// ---- scheduler.cpp

[[nodiscard]] Thread& current();
/// nullptr outside kernels.
[[nodiscard]] Thread* running_thread();
[[nodiscard]] std::uint64_t next_random(Block& block);
void make_ready(Block& block, unsigned warp, std::uint32_t lanes);
/// Runs another thread until this one is made ready and picked.
void park(Thread& thread, Wait wait, Site site);
/// A place where this thread may lose the processor (kRandom, kPct).
void preempt(Thread& thread);
/// Lets others go first, where the order is a random one.
void yield_if_random(Thread& thread);
/// Starts the block's threads and returns when none can run any more.
void run_threads(Block& block);
/// Leaves a thread of a failed block for good.
[[noreturn]] void leave(Thread& thread);
/// Lets the threads that a fault left behind tell TSan that they are over: what they have read must
/// not seem to race with what the host does next.
void drain(Block& block);
void exit_thread(Thread& thread);

// ---- fault.cpp

/// Ends the block with a report. `fail_with_waits` adds who waits where.
[[noreturn, gnu::format(printf, 4, 5)]] void fail(Thread& thread, FaultKind kind, Site site,
                                                  const char* format, ...);
[[noreturn, gnu::format(printf, 4, 5)]] void fail_with_waits(Thread& thread, FaultKind kind,
                                                             Site site, const char* format, ...);
/// The thread ran out of its stack.
void report_overflow(Block& block, const Thread& thread);
/// No thread can run, and not all have exited.
void report_deadlock(Block& block);
[[nodiscard]] const char* base_name(const char* path);

// ---- mutation.cpp

[[nodiscard]] const Mutation* visit_site(const Options& options, Primitive primitive, Site site);
/// The launch's mutation when it is aimed at this primitive here, else nullptr.
[[nodiscard]] inline const Mutation* visit(const Block& block, Primitive primitive, Site site) {
  const Options& options = block.options;
  if (options.mutation == nullptr && options.sites == nullptr) return nullptr;
  return visit_site(options, primitive, site);
}

// ---- shared by barrier.cpp, collective.cpp and matrix.cpp

using CollectiveWork = void (*)(void* const* operands, std::uint32_t mask, Thread& last);
/// Waits for the mask's lanes; the last one runs `work` (may be null) on all operands.
void collective(Wait kind, std::uint32_t mask, void* operand, CollectiveWork work, Site site);
void flush_traffic(Block& block, Warp& warp);

}  // namespace kda::cuda::simt
