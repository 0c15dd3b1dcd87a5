#include "harness/base/interrupt.hpp"

namespace kda::harness {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

extern "C" void on_interrupt(int) { g_interrupted = 1; }

}  // namespace

bool interrupted() noexcept { return g_interrupted != 0; }

InterruptGuard::InterruptGuard() {
  g_interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_interrupt_);
  sigaction(SIGTERM, &action, &before_terminate_);
  sigaction(SIGHUP, nullptr, &before_hangup_);
  if (before_hangup_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // not under nohup
}

InterruptGuard::~InterruptGuard() {
  g_interrupted = 0;
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_terminate_, nullptr);
  sigaction(SIGHUP, &before_hangup_, nullptr);
}

}  // namespace kda::harness
