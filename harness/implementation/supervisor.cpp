#include "harness/implementation/supervisor.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kda::harness {
namespace {

/// The program's part, between fork and exec.
[[noreturn]] void become(const SupervisedStart& start) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int changed : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGCHLD})
    std::signal(changed, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(start.nothing, STDIN_FILENO);
  dup2(start.output, STDOUT_FILENO);
  dup2(start.output, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  execv(start.argv[0], start.argv);
  const char* why = std::strerror(errno);
  (void)!write(STDERR_FILENO, why, std::strlen(why));
  _exit(127);
}

/// Closes everything but one descriptor, so that ends of pipes are where the program has them.
void keep_only(int descriptor) {
  if (descriptor > 0) close_range(0, static_cast<unsigned>(descriptor) - 1, 0);
  close_range(static_cast<unsigned>(descriptor) + 1, ~0U, 0);
}

/// The number that a name in /proc says; 0 for other names.
pid_t number_in(const char* name) {
  pid_t number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return *name == '\0' ? number : 0;
}

/// The parent of a process; 0 when there is no such process any more.
pid_t parent_of(const char* name) {
  std::array<char, 64> path{"/proc/"};
  const std::size_t length = strnlen(name, 20);
  std::memcpy(path.data() + 6, name, length);
  std::memcpy(path.data() + 6 + length, "/stat", 6);  // with its end
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 512> text{};
  const ssize_t got = read(file, text.data(), text.size() - 1);
  close(file);
  if (got <= 0) return 0;
  // "PID (NAME) STATE PARENT ...", where the name may hold anything.
  const char* end = std::strrchr(text.data(), ')');
  if (end == nullptr || std::strlen(end) < 5) return 0;
  pid_t number = 0;
  for (const char* digit = end + 4; *digit >= '0' && *digit <= '9'; ++digit)
    number = number * 10 + (*digit - '0');
  return number;
}

struct DirectoryEntry {  // as the kernel gives it
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  unsigned char type;
  char name[1];
};

/// Sends SIGKILL to every child of this process.
void kill_children() {
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  const pid_t self = getpid();
  alignas(DirectoryEntry) std::array<char, 4096> buffer{};
  while (true) {
    const long got = syscall(SYS_getdents64, proc, buffer.data(), buffer.size());
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer.data() + at);
      at += entry->length;
      const pid_t process = number_in(entry->name);
      if (process > 0 && parent_of(entry->name) == self) kill(process, SIGKILL);
    }
  }
  close(proc);
}

/// Kills the program, then until nothing is left: the children of what is killed become children of
/// this process. The status of the program.
int kill_all(pid_t program) {
  // The group first, before any of it can start another; while the program is there, be it as a
  // zombie, its number is no other group's.
  kill(-program, SIGKILL);
  kill(program, SIGKILL);
  int status = 0;
  waitpid(program, &status, 0);
  constexpr int kMostRounds = 1000;  // a process that cannot be killed hangs in the kernel
  for (int round = 0; round < kMostRounds; ++round) {
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) break;
    kill_children();
    usleep(round < 10 ? 1000 : 10000);
  }
  return status;
}

void report(int descriptor, const SupervisedEnd& end) {
  (void)!write(descriptor, &end, sizeof end);
}

/// Waits until the program has ended, true, or SIGTERM has come. Reaps what it left before.
bool wait_for(pid_t program, const sigset_t& awaited) {
  while (true) {
    siginfo_t info{};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
      if (info.si_pid == program) return true;
      waitpid(info.si_pid, nullptr, 0);
      info.si_pid = 0;
    }
    if (sigwaitinfo(&awaited, &info) == SIGTERM) return false;
  }
}

}  // namespace

void supervise(const SupervisedStart& start) {
  const pid_t parent = getppid();
  setpgid(0, 0);  // what a terminal sends is for the parent
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  for (const int reset : {SIGTERM, SIGCHLD}) std::signal(reset, SIG_DFL);
  for (const int ignored : {SIGINT, SIGHUP, SIGPIPE}) std::signal(ignored, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // it died before it could be watched

  const pid_t program = fork();
  if (program == 0) become(start);
  if (program < 0) {
    report(start.report, {.error = errno, .status = 0});
    _exit(0);
  }
  setpgid(program, program);  // here too: whoever comes first
  keep_only(start.report);
  const bool ended = wait_for(program, awaited);
  const int status = kill_all(program);
  if (ended) report(start.report, {.error = 0, .status = status});
  _exit(0);
}

}  // namespace kda::harness
