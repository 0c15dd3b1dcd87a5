#include "harness/hdf5_probe.hpp"

#include "harness/hdf5.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kda::harness::hdf5 {
namespace {

constexpr rlim_t kSeconds = 20;

/// The child's part: read, and say by the exit status that it came back.
[[noreturn]] void read_and_exit(const std::function<void()>& read) {
  // A program that is meant to die needs no core file, nor a sanitizer's report.
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const rlimit processor{kSeconds, kSeconds};
  setrlimit(RLIMIT_CPU, &processor);
  for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) std::signal(fatal, SIG_DFL);
  try {
    read();
  } catch (...) {  // an error of the file; the parent meets it again
  }
  _exit(0);
}

}  // namespace

void probe_in_child(const std::filesystem::path& file, const std::function<void()>& read) {
  const Place place{file};
  const pid_t child = fork();
  if (child == 0) read_and_exit(read);
  if (child < 0) {
    fail(ErrorCode::kOutOfMemory, place,
         fmt::format("cannot start a process to read it: {}", std::strerror(errno)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)) {
    fail_damaged(place, "the HDF5 library does not come back from reading it");
  }
  fail_damaged(place, "the HDF5 library crashes on reading it");
}

}  // namespace kda::harness::hdf5
