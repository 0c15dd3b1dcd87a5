#pragma once

#include <cstddef>

namespace kda::cuda::simt {

/// A stack with a guard below it that no frame of sensible size can jump over: an overflow is a
/// SIGSEGV, never silent damage.
class Stack {
 public:
  static constexpr std::size_t kGuardBytes = std::size_t{64} * 1024;

  explicit Stack(std::size_t bytes);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  [[nodiscard]] std::byte* low() const noexcept { return low_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* low_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A flow of control that can be left and resumed: a fiber, or the OS thread that runs fibers.
/// A fiber may be resumed by another OS thread only between kernels, when nothing on its stack
/// refers to thread-local storage. Frames left on an abandoned fiber are not unwound.
class Context {
 public:
  using Entry = void (*)(void* argument);

  Context() = default;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Makes this a fiber that runs entry(argument), which must never return, when first switched to.
  void make(const Stack& stack, Entry entry, void* argument);

  /// Makes this stand for the calling OS thread.
  void adopt_thread();

  /// Lowest byte of the fiber's stack.
  [[nodiscard]] const std::byte* stack_low() const noexcept { return stack_low_; }
  [[nodiscard]] std::size_t stack_bytes() const noexcept { return stack_bytes_; }

  /// Leaves `from`, which is running, and resumes `to`.
  static void switch_to(Context& from, Context& to);

 private:
  // What differs between machines (fiber_x86_64.cpp, fiber_ucontext.cpp).
  void prepare();
  static void swap(Context& from, Context& to);
  void release_machine_state();

  static void started(Context& self);  ///< first code on a new fiber
  void resumed();

  void* machine_state_ = nullptr;  ///< stack pointer, or a ucontext_t
  std::byte* stack_low_ = nullptr;
  std::size_t stack_bytes_ = 0;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  void* asan_fake_stack_ = nullptr;
  void* tsan_fiber_ = nullptr;
  bool owns_tsan_fiber_ = false;
};

}  // namespace kda::cuda::simt
