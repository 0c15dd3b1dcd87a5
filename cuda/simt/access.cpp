#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <algorithm>

namespace kda::cuda::simt {
namespace {

using ByteState = SharedArena::ByteState;

bool is_shared(Access kind) {
  return kind == Access::kSharedLoad || kind == Access::kSharedStore || kind == Access::kCopyStore;
}

bool writes(Access kind) {
  return kind == Access::kGlobalStore || kind == Access::kGlobalAtomic ||
         kind == Access::kSharedStore || kind == Access::kCopyStore;
}

std::ptrdiff_t offset_in(const std::byte* begin, const void* address) {
  return static_cast<const std::byte*>(address) - begin;
}

void check_shared_bounds(Thread& thread, const void* address, unsigned bytes, Site site) {
  SharedArena& shared = thread.block->shared;
  const unsigned slot = shared.slot_of(address);
  if (slot >= shared.count()) {
    fail(thread, FaultKind::kSharedOutOfBounds, site, "address %p lies in no shared array",
         address);
  }
  const SharedArena::Array& array = shared.array(slot);
  const std::ptrdiff_t offset = offset_in(array.data, address);
  if (offset < 0 ||
      offset + static_cast<std::ptrdiff_t>(bytes) > static_cast<std::ptrdiff_t>(array.bytes)) {
    fail(thread, FaultKind::kSharedOutOfBounds, site,
         "%u bytes at byte %td of a shared array of %zu (%s array, number %u of the block)", bytes,
         offset, array.bytes, array.key != nullptr ? "static" : "dynamic", slot);
  }
}

void check_byte_states(Thread& thread, Access kind, const void* address, unsigned bytes,
                       Site site) {
  SharedArena& shared = thread.block->shared;
  ByteState* states = shared.states(address);
  for (unsigned i = 0; i < bytes; ++i) {
    if (states[i] == ByteState::kWritten) continue;
    const std::ptrdiff_t offset =
        offset_in(shared.array(shared.slot_of(address)).data, address) + i;
    if (states[i] == ByteState::kInFlight) {
      fail(thread, FaultKind::kSharedInFlight, site,
           "%s of byte %td of a shared array that a cp.async not waited for is writing",
           writes(kind) ? "write" : "read", offset);
    }
    if (kind == Access::kSharedLoad) {
      fail(thread, FaultKind::kSharedUnwritten, site, "read of byte %td of a shared array", offset);
    }
  }
  if (writes(kind)) {
    const sanitizer::IgnoreScope ignore;
    std::fill(states, states + bytes, ByteState::kWritten);
  }
}

void check_global(Thread& thread, Access kind, const void* address, unsigned bytes, Site site) {
  const Memory::Buffer* buffer = thread.block->memory->find(address);
  if (buffer == nullptr) {
    fail(thread, FaultKind::kGlobalOutOfBounds, site, "%u bytes at %p lie in no buffer passed",
         bytes, address);
  }
  const std::ptrdiff_t offset = offset_in(buffer->address, address);
  if (offset + static_cast<std::ptrdiff_t>(bytes) > static_cast<std::ptrdiff_t>(buffer->bytes)) {
    fail(thread, FaultKind::kGlobalOutOfBounds, site,
         "%u bytes at byte %td of %zu, nearest buffer '%s'", bytes, offset, buffer->bytes,
         buffer->name.c_str());
  }
  if (writes(kind) && buffer->access == Memory::Access::kRead) {
    fail(thread, FaultKind::kGlobalReadOnly, site, "%u bytes at byte %td of '%s'", bytes, offset,
         buffer->name.c_str());
  }
}

/// A cp.async may read less than it writes; `width` is what the instruction names.
void check(Thread& thread, Access kind, const void* address, unsigned bytes, unsigned width,
           Site site) {
  if (reinterpret_cast<std::uintptr_t>(address) % width != 0) {
    fail(thread, FaultKind::kMisaligned, site, "address %p is no multiple of %u bytes", address,
         width);
  }
  if (is_shared(kind)) {
    check_shared_bounds(thread, address, bytes, site);
    check_byte_states(thread, kind, address, bytes, site);
  } else if (bytes != 0) {
    check_global(thread, kind, address, bytes, site);
  }
}

void judge(Thread& thread, Access kind, const void* address, unsigned bytes, unsigned width,
           Site site) {
  check(thread, kind, address, bytes, width, site);
  const sanitizer::IgnoreScope ignore;
  thread.block->warps[thread.warp]->traffic.record(kind, address, bytes, width, site, thread.lane);
}

Primitive primitive_of(Access kind) {
  switch (kind) {
    case Access::kSharedLoad: return Primitive::kSharedLoad;
    case Access::kSharedStore: return Primitive::kSharedStore;
    case Access::kGlobalLoad: return Primitive::kGlobalLoad;
    case Access::kGlobalStore: return Primitive::kGlobalStore;
    case Access::kGlobalAtomic: return Primitive::kGlobalAtomic;
    case Access::kCopyLoad:
    case Access::kCopyStore: return Primitive::kCopy;
  }
  return Primitive::kCopy;
}

/// Plain address arithmetic: the address may lie outside its array.
const void* further(const void* address, unsigned bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is the point
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) + bytes);
}

void set_states(Block& block, const Copy& copy, ByteState state) {
  const sanitizer::IgnoreScope ignore;
  std::fill_n(block.shared.states(copy.destination), copy.width, state);
}

}  // namespace

void* access(Access kind, const void* address, unsigned bytes, Site site) {
  Thread& thread = current();
  preempt(thread);
  if (const Mutation* m = visit(*thread.block, primitive_of(kind), site)) {
    if (m->injected == Injected::kDrop) return thread.nowhere;
    address = further(address, bytes);
  }
  judge(thread, kind, address, bytes, bytes, site);
  return const_cast<void*>(address);
}

void check_matrix_row(const void* row, Site site) {
  Thread& thread = current();
  preempt(thread);
  check(thread, Access::kSharedLoad, row, 16, 16, site);
}

void* shared_dynamic(std::size_t bytes, std::size_t alignment, Site site) {
  Thread& thread = current();
  Block& block = *thread.block;
  const unsigned index = thread.arrays_taken++;
  if (index >= block.dynamic_count) {
    const std::size_t offset = (block.dynamic_bytes + alignment - 1) / alignment * alignment;
    if (offset + bytes > block.config.shared_bytes ||
        block.shared.count() == SharedArena::kMaxArrays) {
      fail(thread, FaultKind::kSharedOverRequest, site,
           "array %u takes bytes %zu to %zu, the launch asked for %zu", index, offset,
           offset + bytes, block.config.shared_bytes);
    }
    block.dynamic_bytes = offset + bytes;
    block.dynamic_arrays[block.dynamic_count++] = block.shared.count();
    sanitizer::release(&block.shared.make(offset, bytes, nullptr).order_tag);
  }
  SharedArena::Array& array = block.shared.array(block.dynamic_arrays[index]);
  if (array.bytes != bytes) {
    fail(thread, FaultKind::kBadArgument, site,
         "array %u has %zu bytes here, %zu in another thread", index, bytes, array.bytes);
  }
  sanitizer::acquire(&array.order_tag);
  return array.data;
}

void* shared_static(const void* key, std::size_t bytes, std::size_t alignment, Site site) {
  Thread& thread = current();
  Block& block = *thread.block;
  for (unsigned i = 0; i < block.shared.count(); ++i) {
    SharedArena::Array& array = block.shared.array(i);
    if (array.key != key) continue;
    sanitizer::acquire(&array.order_tag);
    return array.data;
  }
  const std::size_t offset = (block.static_bytes + alignment - 1) / alignment * alignment;
  block.static_bytes = offset + bytes;
  if (block.static_bytes > kMaxStaticSharedBytes ||
      block.static_bytes + block.config.shared_bytes > kMaxSharedBytes ||
      block.shared.count() == SharedArena::kMaxArrays) {
    fail(thread, FaultKind::kSharedOverRequest, site,
         "static arrays of %zu bytes (at most %zu, and %zu with the %zu dynamic ones)",
         block.static_bytes, kMaxStaticSharedBytes, kMaxSharedBytes, block.config.shared_bytes);
  }
  SharedArena::Array& array = block.shared.make(offset, bytes, key);
  sanitizer::release(&array.order_tag);
  return array.data;
}

Issue issue_copy(Copy& copy, Site site) {
  Thread& thread = current();
  Block& block = *thread.block;
  preempt(thread);
  if (const Mutation* m = visit(block, Primitive::kCopy, site)) {
    if (m->injected == Injected::kDrop) return Issue::kNever;
    copy.source = static_cast<const std::byte*>(further(copy.source, copy.width));
  }
  if (copy.source_bytes < copy.width && visit(block, Primitive::kPartialCopy, site) != nullptr) {
    copy.source_bytes = copy.width;
  }
  if (copy.source_bytes > copy.width) {
    fail(thread, FaultKind::kBadArgument, site, "cp.async reads %u bytes to write %u",
         copy.source_bytes, copy.width);
  }
  judge(thread, Access::kCopyLoad, copy.source, copy.source_bytes, copy.width, site);
  judge(thread, Access::kCopyStore, copy.destination, copy.width, copy.width, site);
  ++block.counters.copies;
  const CopyMode mode = block.options.copies;
  const bool now =
      mode == CopyMode::kEager || (mode == CopyMode::kRandom && next_random(block) % 2 == 0);
  if (!now) set_states(block, copy, ByteState::kInFlight);
  const sanitizer::IgnoreScope ignore;
  thread.copies.push_back({copy, thread.copy_group, now, site});
  return now ? Issue::kNow : Issue::kLater;
}

void commit_copies() {
  Thread& thread = current();
  ++thread.copy_group;
  ++thread.block->counters.copy_groups;
}

const Copy* next_finished_copy(unsigned keep, Site site) {
  Thread& thread = current();
  preempt(thread);
  if (visit(*thread.block, Primitive::kCopyWait, site) != nullptr) return nullptr;
  const sanitizer::IgnoreScope ignore;
  while (!thread.copies.empty() && thread.copies.front().group + keep < thread.copy_group) {
    const PendingCopy pending = thread.copies.front();
    thread.copies.erase(thread.copies.begin());
    if (pending.moved) continue;
    set_states(*thread.block, pending.copy, ByteState::kWritten);
    thread.finished = pending.copy;
    return &thread.finished;
  }
  return nullptr;
}

Dim3 thread_index() { return current().index; }
Dim3 block_index() { return current().block->index; }
Dim3 block_extent() { return current().block->config.block; }
Dim3 grid_extent() { return current().block->config.grid; }
unsigned lane() { return current().lane; }

void count_special() { ++current().block->counters.special; }

void count_atomic() { ++current().block->counters.atomics; }

}  // namespace kda::cuda::simt
