#pragma once

namespace kda::cuda::simt {

/// While it lives, a kernel thread of this OS thread that overflows its stack ends its block with
/// kStackOverflow instead of the program with SIGSEGV. Other SIGSEGVs go where they went before.
/// Does nothing under a sanitizer, which has a handler of its own.
class OverflowWatch {
 public:
  OverflowWatch();
  ~OverflowWatch();
  OverflowWatch(const OverflowWatch&) = delete;
  OverflowWatch& operator=(const OverflowWatch&) = delete;

 private:
  bool installed_ = false;
};

}  // namespace kda::cuda::simt
