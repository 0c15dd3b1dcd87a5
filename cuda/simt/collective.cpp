#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <bit>

namespace kda::cuda::simt {
namespace {

struct ShuffleOperand {
  std::uint64_t value = 0;
  std::uint64_t result = 0;
  Shuffle kind = Shuffle::kIndex;
  int operand = 0;
  Site site;
};

/// The lane that `lane` reads from.
unsigned source_lane(const ShuffleOperand& o, unsigned lane) {
  const auto self = static_cast<int>(lane);
  switch (o.kind) {
    case Shuffle::kIndex: return static_cast<unsigned>(o.operand) % kWarpSize;
    case Shuffle::kXor: return (lane ^ static_cast<unsigned>(o.operand)) % kWarpSize;
    case Shuffle::kUp: return self >= o.operand ? static_cast<unsigned>(self - o.operand) : lane;
    case Shuffle::kDown:
      return self + o.operand < 32 ? static_cast<unsigned>(self + o.operand) : lane;
  }
  return lane;
}

void do_shuffle(void* const* operands, std::uint32_t mask, Thread& last) {
  ++last.block->counters.shuffles;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    auto& o = *static_cast<ShuffleOperand*>(operands[lane]);
    const unsigned source = source_lane(o, lane);
    if ((mask >> source & 1U) == 0) {
      fail(last, FaultKind::kBadMask, o.site, "lane %u reads lane %u outside the mask 0x%08x", lane,
           source, mask);
    }
    o.result = static_cast<const ShuffleOperand*>(operands[source])->value;
  }
}

struct VoteOperand {
  bool predicate;
  std::uint32_t result;
};

void do_ballot(void* const* operands, std::uint32_t mask, Thread& last) {
  ++last.block->counters.votes;
  std::uint32_t result = 0;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    if (static_cast<const VoteOperand*>(operands[lane])->predicate) result |= 1U << lane;
  }
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    static_cast<VoteOperand*>(operands[std::countr_zero(lanes)])->result = result;
  }
}

void count_warp_barrier(void* const* /*operands*/, std::uint32_t /*mask*/, Thread& last) {
  ++last.block->counters.warp_barriers;
}

void check_mask(Thread& thread, const Warp& warp, std::uint32_t mask, Site site) {
  if ((mask >> thread.lane & 1U) == 0) {
    fail(thread, FaultKind::kBadMask, site, "lane %u is not in its own mask 0x%08x", thread.lane,
         mask);
  }
  if ((mask & ~warp.lanes) != 0) {
    fail(thread, FaultKind::kBadMask, site, "mask 0x%08x names lanes that do not exist (0x%08x do)",
         mask, warp.lanes);
  }
}

}  // namespace

void flush_traffic(Block& block, Warp& warp) {
  const sanitizer::IgnoreScope ignore;
  warp.traffic.flush(block.counters);
}

void collective(Wait kind, std::uint32_t mask, void* operand, CollectiveWork work, Site site) {
  Thread& thread = current();
  Block& block = *thread.block;
  Warp& warp = *block.warps[thread.warp];
  preempt(thread);
  check_mask(thread, warp, mask, site);
  Collective& c = warp.collectives[std::countr_zero(mask)];
  if (c.arrived == 0) {
    c.mask = mask;
    c.kind = kind;
    c.site = site;
  } else if (c.kind != kind || c.mask != mask || !(c.site == site)) {
    thread.wait_mask = mask;
    fail_with_waits(thread, FaultKind::kWarpDivergent, site,
                    "mask 0x%08x here, other lanes are at %s:%d with mask 0x%08x", mask,
                    base_name(c.site.file), c.site.line, c.mask);
  }
  c.arrived |= 1U << thread.lane;
  c.operands[thread.lane] = operand;
  // Of the collectives only sync_warp orders memory.
  const bool orders = kind == Wait::kWarpBarrier;
  char* tag = &c.order_tags[c.phase & 1U];
  if (orders) sanitizer::release(tag);
  if (c.arrived == mask) {
    if (work != nullptr) work(c.operands, mask, thread);
    if (mask == warp.lanes) flush_traffic(block, warp);
    c.arrived = 0;
    ++c.phase;
    make_ready(block, thread.warp, mask & ~(1U << thread.lane));
    yield_if_random(thread);
  } else {
    thread.wait_barrier = 0;
    thread.wait_mask = mask;
    park(thread, kind, site);
  }
  if (orders) sanitizer::acquire(tag);
}

void warp_barrier(std::uint32_t mask, Site site) {
  if (visit(*current().block, Primitive::kWarpBarrier, site) != nullptr) return;
  collective(Wait::kWarpBarrier, mask, nullptr, &count_warp_barrier, site);
}

std::uint64_t shuffle(Shuffle kind, std::uint64_t value, int operand, std::uint32_t mask,
                      Site site) {
  if (visit(*current().block, Primitive::kShuffle, site) != nullptr) {
    operand = kind == Shuffle::kXor ? 0 : operand ^ 1;
  }
  ShuffleOperand o{value, value, kind, operand, site};
  collective(Wait::kShuffle, mask, &o, &do_shuffle, site);
  return o.result;
}

std::uint32_t ballot(bool predicate, std::uint32_t mask, Site site) {
  VoteOperand o{predicate, 0};
  collective(Wait::kVote, mask, &o, &do_ballot, site);
  if (visit(*current().block, Primitive::kVote, site) != nullptr) o.result = mask & ~o.result;
  return o.result;
}

}  // namespace kda::cuda::simt
