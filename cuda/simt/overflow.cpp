#include "cuda/simt/overflow.hpp"

#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <csignal>
#include <cstdint>
#include <mutex>

namespace kda::cuda::simt {
namespace {

constexpr std::size_t kSignalStackBytes = std::size_t{64} * 1024;
alignas(16) thread_local std::byte signal_stack[kSignalStackBytes];
struct sigaction previous;

/// Whether the address lies just below the stack of the thread that is running.
bool overflows(const Thread& thread, const void* address) {
  const auto low = reinterpret_cast<std::uintptr_t>(thread.context.stack_low());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at < low && low - at <= Stack::kGuardBytes;
}

/// On the signal stack, with the fiber's stack full. Nothing here may allocate: the fiber may have
/// been stopped inside malloc. The worker makes the report.
void on_fault(int signal, siginfo_t* info, void* context) {
  Thread* thread = running_thread();
  if (thread != nullptr && overflows(*thread, info->si_addr)) {
    thread->block->overflowed = thread;
    thread->block->failed = true;
    leave(*thread);
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    sigaction(signal, &previous, nullptr);  // and the access that is repeated ends the program
  }
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  // NODEFER: the handler is left by a switch of stacks, not by a return.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous);
}

}  // namespace

OverflowWatch::OverflowWatch() {
  if (sanitizer::asan() || sanitizer::tsan()) return;
  static std::once_flag once;
  std::call_once(once, install_handler);
  stack_t current;
  if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
  stack_t stack{};
  stack.ss_sp = signal_stack;
  stack.ss_size = kSignalStackBytes;
  installed_ = sigaltstack(&stack, nullptr) == 0;
}

OverflowWatch::~OverflowWatch() {
  if (!installed_) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace kda::cuda::simt
