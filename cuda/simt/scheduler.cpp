#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <bit>

namespace kda::cuda::simt {
namespace {

/// Primitives between two preemptions, at most.
constexpr unsigned kPreemptPeriod = 128;
/// One pick in so many gives a random warp a new priority.
constexpr unsigned kPriorityPeriod = 256;

thread_local Thread* running = nullptr;

unsigned random_below(Block& block, unsigned limit) {
  return static_cast<unsigned>(next_random(block) % limit);
}

void draw_priorities(Block& block, Warp& warp, unsigned number) {
  warp.priority = random_below(block, 1U << 16U);
  for (std::uint32_t lanes = warp.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    block.threads[number * kWarpSize + lane]->priority = random_below(block, 256);
  }
}

Thread* thread_of(Block& block, unsigned warp, unsigned lane) {
  return block.threads[warp * kWarpSize + lane].get();
}

Thread* pick_in_order(Block& block) {
  const auto warps = static_cast<unsigned>(block.warps.size());
  const unsigned first = block.cursor / kWarpSize;
  const unsigned lane = block.cursor % kWarpSize;
  const std::uint32_t later = lane == 31 ? 0 : ~0U << (lane + 1);
  for (unsigned i = 0; i <= warps; ++i) {
    const unsigned w = (first + i) % warps;
    std::uint32_t ready = block.warps[w]->ready;
    if (i == 0) ready &= later;
    if (ready != 0) return thread_of(block, w, static_cast<unsigned>(std::countr_zero(ready)));
  }
  return nullptr;
}

Thread* pick_reverse(Block& block) {
  const auto warps = static_cast<unsigned>(block.warps.size());
  const unsigned first = block.cursor / kWarpSize;
  const std::uint32_t earlier = (1U << (block.cursor % kWarpSize)) - 1;
  for (unsigned i = 0; i <= warps; ++i) {
    const unsigned w = (first + warps - i % warps) % warps;
    std::uint32_t ready = block.warps[w]->ready;
    if (i == 0) ready &= earlier;
    if (ready != 0) return thread_of(block, w, 31 - static_cast<unsigned>(std::countl_zero(ready)));
  }
  return nullptr;
}

Thread* pick_random(Block& block) {
  unsigned count = 0;
  for (const auto& warp : block.warps) count += static_cast<unsigned>(std::popcount(warp->ready));
  if (count == 0) return nullptr;
  unsigned skip = random_below(block, count);
  unsigned w = 0;
  for (;; ++w) {
    const auto here = static_cast<unsigned>(std::popcount(block.warps[w]->ready));
    if (skip < here) break;
    skip -= here;
  }
  std::uint32_t ready = block.warps[w]->ready;
  for (; skip > 0; --skip) ready &= ready - 1;
  return thread_of(block, w, static_cast<unsigned>(std::countr_zero(ready)));
}

Thread* pick_pct(Block& block) {
  const auto warps = static_cast<unsigned>(block.warps.size());
  if (random_below(block, kPriorityPeriod) == 0) {
    const unsigned w = random_below(block, warps);
    draw_priorities(block, *block.warps[w], w);
  }
  unsigned best = warps;
  for (unsigned w = 0; w < warps; ++w) {
    if (block.warps[w]->ready == 0) continue;
    if (best == warps || block.warps[w]->priority > block.warps[best]->priority) best = w;
  }
  if (best == warps) return nullptr;
  Thread* chosen = nullptr;
  for (std::uint32_t ready = block.warps[best]->ready; ready != 0; ready &= ready - 1) {
    Thread* t = thread_of(block, best, static_cast<unsigned>(std::countr_zero(ready)));
    if (chosen == nullptr || t->priority > chosen->priority) chosen = t;
  }
  return chosen;
}

/// The next thread to run, no longer marked ready; nullptr when none can.
Thread* pick(Block& block) {
  Thread* next = nullptr;
  switch (block.options.order) {
    case Order::kInOrder: next = pick_in_order(block); break;
    case Order::kReverse: next = pick_reverse(block); break;
    case Order::kRandom: next = pick_random(block); break;
    case Order::kPct: next = pick_pct(block); break;
  }
  if (next != nullptr) {
    block.cursor = next->number;
    block.warps[next->warp]->ready &= ~(1U << next->lane);
  }
  return next;
}

void switch_to(Block& block, Context& from, Thread* next) {
  running = next;
  Context::switch_to(from, next != nullptr ? next->context : block.worker);
}

bool is_random(const Block& block) {
  return block.options.order == Order::kRandom || block.options.order == Order::kPct;
}

void yield(Thread& thread) {
  Block& block = *thread.block;
  make_ready(block, thread.warp, 1U << thread.lane);
  Thread* next = pick(block);
  if (next == &thread) return;
  switch_to(block, thread.context, next);
  if (block.failed) leave(thread);
}

}  // namespace

Thread& current() { return *running; }
Thread* running_thread() { return running; }

std::uint64_t next_random(Block& block) {
  std::uint64_t x = block.random_state;
  x ^= x << 13U;
  x ^= x >> 7U;
  x ^= x << 17U;
  block.random_state = x;
  return (x * 0x2545F4914F6CDD1DU) >> 33U;
}

void make_ready(Block& block, unsigned warp, std::uint32_t lanes) {
  block.warps[warp]->ready |= lanes;
  for (; lanes != 0; lanes &= lanes - 1) {
    thread_of(block, warp, static_cast<unsigned>(std::countr_zero(lanes)))->state =
        ThreadState::kReady;
  }
}

void park(Thread& thread, Wait wait, Site site) {
  Block& block = *thread.block;
  thread.state = ThreadState::kWaiting;
  thread.wait = wait;
  thread.wait_site = site;
  switch_to(block, thread.context, pick(block));
  if (block.failed) leave(thread);
}

void preempt(Thread& thread) {
  Block& block = *thread.block;
  if (!is_random(block) || --block.until_preempt != 0) return;
  block.until_preempt = 1 + random_below(block, kPreemptPeriod);
  if (block.options.order == Order::kPct) {
    draw_priorities(block, *block.warps[thread.warp], thread.warp);
  }
  yield(thread);
}

void yield_if_random(Thread& thread) {
  if (is_random(*thread.block)) yield(thread);
}

void run_threads(Block& block) {
  for (int i = 0; i < 8; ++i) static_cast<void>(next_random(block));  // small seeds are alike
  block.until_preempt = 1 + random_below(block, kPreemptPeriod);
  block.cursor =
      block.options.order == Order::kReverse ? 0 : static_cast<unsigned>(block.threads.size()) - 1;
  for (unsigned w = 0; w < block.warps.size(); ++w) {
    draw_priorities(block, *block.warps[w], w);
    make_ready(block, w, block.warps[w]->lanes);
  }
  sanitizer::release(&block.start_tag);
  switch_to(block, block.worker, pick(block));
  sanitizer::acquire(&block.end_tag);
  running = nullptr;
}

void drain(Block& block) {
  if (!sanitizer::tsan()) return;
  for (const auto& thread : block.threads) {
    if (thread->state != ThreadState::kExited) switch_to(block, block.worker, thread.get());
  }
  sanitizer::acquire(&block.end_tag);
  running = nullptr;
}

void leave(Thread& thread) {
  Block& block = *thread.block;
  thread.state = ThreadState::kExited;
  sanitizer::release(&block.end_tag);
  switch_to(block, thread.context, nullptr);
  __builtin_unreachable();
}

void exit_thread(Thread& thread) {
  Block& block = *thread.block;
  if (!thread.copies.empty()) {
    fail(thread, FaultKind::kCopyInFlightAtExit, thread.copies.front().site,
         "%zu cp.async never waited for, the first issued here", thread.copies.size());
  }
  thread.state = ThreadState::kExited;
  ++block.exited;
  const Barrier& full = block.barriers[0];
  if (full.arrived != 0) {
    fail_with_waits(thread, FaultKind::kBarrierAbandoned, full.site,
                    "the thread exits while %u threads wait here", full.arrived);
  }
  sanitizer::release(&block.end_tag);
  switch_to(block, thread.context, pick(block));
}

}  // namespace kda::cuda::simt
