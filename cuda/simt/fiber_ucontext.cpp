#include "cuda/simt/fiber.hpp"

#include <cstdint>
#include <cstdlib>

#include <ucontext.h>

// Any POSIX machine, slowly: each switch saves the signal mask with a system call.

namespace kda::cuda::simt {
namespace {

ucontext_t& machine(void*& state) {
  if (state == nullptr) state = new ucontext_t{};
  return *static_cast<ucontext_t*>(state);
}

/// makecontext passes ints only.
using Start = void (*)(unsigned high, unsigned low);

}  // namespace

void Context::prepare() {
  ucontext_t& context = machine(machine_state_);
  if (getcontext(&context) != 0) std::abort();
  context.uc_stack.ss_sp = stack_low_;
  context.uc_stack.ss_size = stack_bytes_;
  context.uc_link = nullptr;
  const Start start = [](unsigned high, unsigned low) {
    const auto address = (std::uint64_t{high} << 32) | low;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no other way through makecontext
    started(*reinterpret_cast<Context*>(static_cast<std::uintptr_t>(address)));
  };
  const auto address = std::uint64_t{reinterpret_cast<std::uintptr_t>(this)};
  makecontext(&context, reinterpret_cast<void (*)()>(start), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
}

void Context::swap(Context& from, Context& to) {
  if (swapcontext(&machine(from.machine_state_), &machine(to.machine_state_)) != 0) std::abort();
}

void Context::release_machine_state() { delete static_cast<ucontext_t*>(machine_state_); }

}  // namespace kda::cuda::simt
