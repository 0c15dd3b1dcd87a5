#include "cuda/simt/worker.hpp"

#include "cuda/simt/sanitizer.hpp"

#include <algorithm>

namespace kda::cuda::simt {
namespace {

/// Sanitizers make frames several times larger.
std::size_t stack_bytes() {
  return sanitizer::asan() || sanitizer::tsan() ? 256 * 1024 : 64 * 1024;
}

std::uint64_t barriers_completed(const Counters& counters) {
  return counters.block_barriers + counters.named_barriers;
}

/// A fiber runs one kernel thread after another.
void run_kernel_threads(void* argument) {
  auto& thread = *static_cast<Thread*>(argument);
  for (;;) {
    sanitizer::acquire(&thread.block->start_tag);
    if (thread.block->failed) leave(thread);
    thread.block->body(thread.block->body_argument);
    exit_thread(thread);
  }
}

}  // namespace

Worker::Worker(unsigned threads) {
  for (unsigned first = 0; first < threads; first += kWarpSize) {
    auto warp = std::make_unique<Warp>();
    const unsigned lanes = threads - first;
    warp->lanes = lanes >= kWarpSize ? 0xFFFFFFFFU : (1U << lanes) - 1;
    block_.warps.push_back(std::move(warp));
  }
  for (unsigned i = 0; i < threads; ++i) {
    stacks_.push_back(std::make_unique<Stack>(stack_bytes()));
    auto thread = std::make_unique<Thread>();
    thread->block = &block_;
    thread->number = i;
    thread->warp = i / kWarpSize;
    thread->lane = i % kWarpSize;
    thread->context.make(*stacks_.back(), &run_kernel_threads, thread.get());
    block_.threads.push_back(std::move(thread));
  }
}

unsigned Worker::threads() const { return static_cast<unsigned>(block_.threads.size()); }

void Worker::bind(const LaunchConfig& config, const Options& options, const Memory& memory,
                  Body body) {
  block_.config = config;
  block_.options = options;
  block_.memory = &memory;
  block_.body = body.call;
  block_.body_argument = body.argument;
  block_.counters = Counters{};
  for (const auto& thread : block_.threads) {
    const unsigned plane = config.block.x * config.block.y;
    thread->index = {thread->number % config.block.x,
                     thread->number / config.block.x % config.block.y, thread->number / plane};
  }
  block_.worker.adopt_thread();
}

void Worker::reset(std::uint64_t block_number) {
  const Dim3& grid = block_.config.grid;
  block_.index = {static_cast<unsigned>(block_number % grid.x),
                  static_cast<unsigned>(block_number / grid.x % grid.y),
                  static_cast<unsigned>(block_number / grid.x / grid.y)};
  block_.random_state = ((block_.options.seed + 1) * 0x9E3779B97F4A7C15U) ^
                        ((block_number + 1) * 0xD1B54A32D192ED03U);
  if (block_.random_state == 0) block_.random_state = 1;
  block_.shared.reset();
  block_.dynamic_bytes = 0;
  block_.static_bytes = 0;
  block_.dynamic_count = 0;
  block_.exited = 0;
  for (Barrier& barrier : block_.barriers) barrier.arrived = 0;
  for (const auto& thread : block_.threads) {
    thread->arrays_taken = 0;
    thread->copy_group = 0;
    thread->wait = Wait::kNone;
  }
}

bool Worker::run(std::uint64_t block_number) {
  reset(block_number);
  const std::uint64_t barriers_before = barriers_completed(block_.counters);
  run_threads(block_);
  if (block_.overflowed != nullptr) report_overflow(block_, *block_.overflowed);
  if (!block_.failed && block_.exited < threads()) report_deadlock(block_);
  if (block_.failed) {
    drain(block_);
    return false;
  }
  for (const auto& warp : block_.warps) flush_traffic(block_, *warp);
  for (const Barrier& barrier : block_.barriers) {
    if (barrier.arrived == 0) continue;
    // Arrivals nobody waited for would carry over into nothing; the protocol is broken.
    Thread& first = *block_.threads.front();
    block_.failed = true;
    block_.report = {FaultKind::kBarrierAbandoned,
                     block_.config.name,
                     block_.index,
                     first.index,
                     base_name(barrier.site.file),
                     barrier.site.line,
                     std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
                         " threads have arrived when the block ends"};
    return false;
  }
  ++block_.counters.blocks;
  block_.counters.path_barriers = std::max(block_.counters.path_barriers,
                                           barriers_completed(block_.counters) - barriers_before);
  return true;
}

}  // namespace kda::cuda::simt
