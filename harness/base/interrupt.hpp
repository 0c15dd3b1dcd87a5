#pragma once

#include <csignal>

namespace kda::harness {

/// Thrown where the work in progress was given up because of a signal; no std::exception, so that
/// nothing takes it for an error of the case.
struct Interrupted {};

/// True once SIGINT, SIGTERM or SIGHUP came, for as long as the guard of that time stands.
[[nodiscard]] bool interrupted() noexcept;

/// SIGINT, SIGTERM or SIGHUP (unless ignored, as under nohup) asks the run to end: child processes
/// are killed, cases in progress inside this process are finished. A second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();

 private:
  struct sigaction before_interrupt_ {};
  struct sigaction before_terminate_ {};
  struct sigaction before_hangup_ {};
};

}  // namespace kda::harness
