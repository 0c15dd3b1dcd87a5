#pragma once

#include <string>
#include <vector>

namespace kda::harness {

/// How a child process ended.
struct ChildEnd {
  enum class Kind { kExited, kSignalled, kTimedOut };
  Kind kind = Kind::kExited;
  int value = 0;       ///< exit status or signal
  std::string output;  ///< the last 4000 bytes of its standard output and error
};

/// Runs `argv` (argv[0] is a path) in a process group of its own, with nothing on standard input,
/// and waits for at most `seconds`. Whatever is left of it then is killed, processes that went into
/// groups or sessions of their own too: a supervisor between it and this process adopts them. All
/// of them die with this process. No core file is left.
/// Throws Interrupted when a signal ends the run meanwhile (interrupt.hpp), kOutOfMemory when no
/// process can be started. May be called from several threads.
[[nodiscard]] ChildEnd run_child(const std::vector<std::string>& argv, double seconds);

/// "signal SIGSEGV", "exit status 3", "no answer within 60 s".
[[nodiscard]] std::string to_string(const ChildEnd& end, double seconds);

}  // namespace kda::harness
