#pragma once

namespace kda::harness {

/// What supervise() writes at the end.
struct SupervisedEnd {
  int error = 0;   ///< errno when the program could not be forked, else 0
  int status = 0;  ///< of the program, as waitpid gives it
};

/// What a supervised program is started with: descriptors of its standard input, of both outputs,
/// and of the pipe that a SupervisedEnd is written to.
struct SupervisedStart {
  char* const* argv;
  int nothing;
  int output;
  int report;
};

/// The part of a forked process that runs `argv` (argv[0] is a path) and adopts whatever it and
/// its descendants leave behind, in whatever group or session. When the program ends, when SIGTERM
/// comes or the parent dies all of them are killed. SIGTERM must be blocked before the fork, or one
/// that comes at once is lost. Only async-signal-safe calls: other threads of the parent may have
/// held any lock.
[[noreturn]] void supervise(const SupervisedStart& start);

}  // namespace kda::harness
