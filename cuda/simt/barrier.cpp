#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <bit>

namespace kda::cuda::simt {
namespace {

constexpr int kNamedBarriers = 16;

/// All threads the barrier waited for are there: lets them go and starts the next phase.
void complete(Block& block, Barrier& barrier, Thread& last, Site site) {
  for (unsigned w = 0; w < block.warps.size(); ++w) {
    Warp& warp = *block.warps[w];
    const std::uint32_t lanes = barrier.lanes[w];
    if (lanes == 0) continue;
    if (lanes != warp.lanes) {
      fail_with_waits(last, FaultKind::kBadArgument, site,
                      "barrier completed by part of warp %u only (lanes 0x%08x)", w, lanes);
    }
    // Converged, unless lanes only arrived and went on.
    std::uint32_t waiting = barrier.waiting[w];
    if (last.warp == w) waiting |= 1U << last.lane;
    if (waiting == warp.lanes) flush_traffic(block, warp);
  }
  for (unsigned w = 0; w < block.warps.size(); ++w) {
    make_ready(block, w, barrier.waiting[w]);
    barrier.lanes[w] = 0;
    barrier.waiting[w] = 0;
  }
  barrier.arrived = 0;
  ++barrier.phase;
}

void arrive(int id, unsigned threads, bool wait, Site site) {
  Thread& thread = current();
  Block& block = *thread.block;
  Barrier& barrier = block.barriers[id];
  if (barrier.arrived == 0) {
    barrier.expected = threads;
    barrier.site = site;
  } else if (barrier.expected != threads) {
    fail_with_waits(thread, FaultKind::kBarrierDivergent, site,
                    "barrier %d for %u threads, others at %s:%d wait for %u", id, threads,
                    base_name(barrier.site.file), barrier.site.line, barrier.expected);
  } else if (id == 0 && !(barrier.site == site)) {
    fail_with_waits(thread, FaultKind::kBarrierDivergent, site,
                    "sync_block here, others are in sync_block at %s:%d",
                    base_name(barrier.site.file), barrier.site.line);
  }
  if ((barrier.lanes[thread.warp] >> thread.lane & 1U) != 0) {
    fail_with_waits(thread, FaultKind::kBadArgument, site,
                    "the thread arrives twice at barrier %d before it completes", id);
  }
  barrier.lanes[thread.warp] |= 1U << thread.lane;
  char* tag = &barrier.order_tags[barrier.phase & 1U];
  sanitizer::release(tag);
  if (++barrier.arrived == barrier.expected) {
    (id == 0 ? block.counters.block_barriers : block.counters.named_barriers) += 1;
    complete(block, barrier, thread, site);
    yield_if_random(thread);  // or the last to arrive would always go on first
  } else if (wait) {
    barrier.waiting[thread.warp] |= 1U << thread.lane;
    thread.wait_barrier = id;
    thread.wait_mask = 0;
    park(thread, id == 0 ? Wait::kBlockBarrier : Wait::kNamedBarrier, site);
  }
  if (wait) sanitizer::acquire(tag);
}

}  // namespace

void block_barrier(Site site) {
  Thread& thread = current();
  Block& block = *thread.block;
  preempt(thread);
  if (visit(block, Primitive::kBlockBarrier, site) != nullptr) return;
  if (block.exited != 0) {
    fail_with_waits(thread, FaultKind::kBarrierAbandoned, site,
                    "sync_block, but %u threads have exited", block.exited);
  }
  arrive(0, static_cast<unsigned>(block.threads.size()), true, site);
}

void named_barrier(int id, int threads, bool wait, Site site) {
  Thread& thread = current();
  preempt(thread);
  if (visit(*thread.block, Primitive::kNamedBarrier, site) != nullptr) return;
  const auto all = static_cast<int>(thread.block->threads.size());
  if (id < 1 || id >= kNamedBarriers || threads <= 0 || threads % 32 != 0 || threads > all) {
    fail(thread, FaultKind::kBadArgument, site,
         "barrier %d for %d threads: wanted 1 to 15, and a multiple of 32 up to %d", id, threads,
         all);
  }
  arrive(id, static_cast<unsigned>(threads), wait, site);
}

}  // namespace kda::cuda::simt
