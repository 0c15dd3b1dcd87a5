#pragma once

#include <cstddef>

// Hooks of the sanitizers' run-time libraries. They are declared weak and asked for at run time:
// the executor's own files are compiled without ThreadSanitizer (kernel threads share its state
// with no synchronisation that TSan could know of), so no macro tells them that it is linked in.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of the sanitizers'
// interface
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** save, const void* bottom,
                                                  std::size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* save, const void** bottom,
                                                   std::size_t* size);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace kda::cuda::simt::sanitizer {

inline bool tsan() { return __tsan_create_fiber != nullptr; }
inline bool asan() { return __asan_unpoison_memory_region != nullptr; }

/// Everything before a release of `tag` happens before everything after its acquire.
inline void release(void* tag) {
  if (tsan()) __tsan_release(tag);
}
inline void acquire(void* tag) {
  if (tsan()) __tsan_acquire(tag);
}

/// The executor's own use of the heap and of containers, which lanes share, is not to be judged.
class IgnoreScope {
 public:
  IgnoreScope() {
    if (!tsan()) return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~IgnoreScope() {
    if (!tsan()) return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  IgnoreScope(const IgnoreScope&) = delete;
  IgnoreScope& operator=(const IgnoreScope&) = delete;
};

}  // namespace kda::cuda::simt::sanitizer
