#include "cuda/simt/fiber.hpp"

#include "cuda/simt/sanitizer.hpp"

#include <cstdlib>
#include <new>

#include <pthread.h>
#include <sys/mman.h>

namespace kda::cuda::simt {

Stack::Stack(std::size_t bytes) : bytes_(bytes) {
  void* map = mmap(nullptr, bytes + kGuardBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  if (mprotect(map, kGuardBytes, PROT_NONE) != 0) {
    munmap(map, bytes + kGuardBytes);
    throw std::bad_alloc();
  }
  low_ = static_cast<std::byte*>(map) + kGuardBytes;
}

Stack::~Stack() {
  // ASan may have marked frames that an abandoned fiber left behind.
  if (sanitizer::asan()) __asan_unpoison_memory_region(low_, bytes_);
  munmap(low_ - kGuardBytes, bytes_ + kGuardBytes);
}

Context::~Context() {
  if (owns_tsan_fiber_) __tsan_destroy_fiber(tsan_fiber_);
  release_machine_state();
}

void Context::make(const Stack& stack, Entry entry, void* argument) {
  stack_low_ = stack.low();
  stack_bytes_ = stack.bytes();
  entry_ = entry;
  argument_ = argument;
  asan_fake_stack_ = nullptr;
  if (sanitizer::asan()) __asan_unpoison_memory_region(stack_low_, stack_bytes_);
  if (sanitizer::tsan()) {
    if (owns_tsan_fiber_) __tsan_destroy_fiber(tsan_fiber_);
    tsan_fiber_ = __tsan_create_fiber(0);
    owns_tsan_fiber_ = true;
  }
  prepare();
}

void Context::adopt_thread() {
  if (sanitizer::asan()) {  // it wants to know the bounds of the stack it returns to
    pthread_attr_t attributes;
    void* low = nullptr;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) std::abort();
    pthread_attr_getstack(&attributes, &low, &stack_bytes_);
    pthread_attr_destroy(&attributes);
    stack_low_ = static_cast<std::byte*>(low);
  }
  if (sanitizer::tsan()) tsan_fiber_ = __tsan_get_current_fiber();
}

void Context::switch_to(Context& from, Context& to) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&from.asan_fake_stack_, to.stack_low_, to.stack_bytes_);
  }
  // 1 = no synchronisation: a switch must not look like a happens-before edge, or no race of the
  // kernel would ever be seen. Barriers say themselves what they order.
  if (sanitizer::tsan()) __tsan_switch_to_fiber(to.tsan_fiber_, 1);
  swap(from, to);
  from.resumed();
}

void Context::resumed() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(asan_fake_stack_, nullptr, nullptr);
  }
}

void Context::started(Context& self) {
  self.resumed();
  self.entry_(self.argument_);
  std::abort();
}

}  // namespace kda::cuda::simt
