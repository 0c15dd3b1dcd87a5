#include "harness/implementation/child_process.hpp"

#include "harness/run/interrupt.hpp"
#include "reference/types/error.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kda::harness {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTailBytes = 4000;
constexpr int kPollMs = 10;  // how late a deadline or an interrupt may be seen

[[noreturn]] void fail_to_start(const char* doing) {
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("cannot start a process: {}: {}", doing, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  void reset() {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
};

/// The child's part, between fork and exec: async-signal-safe calls only, since other threads of
/// the parent may have held any lock.
[[noreturn]] void become(char* const* argv, int nothing, int output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int changed : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM}) std::signal(changed, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  execv(argv[0], argv);
  const char* why = std::strerror(errno);
  (void)!write(STDERR_FILENO, why, std::strlen(why));
  _exit(127);
}

/// A running child; on destruction its whole group is killed and it is reaped.
class Child {
 public:
  Child(const std::vector<std::string>& argv, int nothing, int output) {
    std::vector<char*> pointers;
    pointers.reserve(argv.size() + 1);
    for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.data()));
    pointers.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) become(pointers.data(), nothing, output);
    if (pid_ < 0) fail_to_start("fork");
    setpgid(pid_, pid_);  // here too: whoever comes first
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) (void)end();
  }

  /// Still a zombie then, so that its number cannot be another process's yet.
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

  /// Kills what is left of the group; the status of the child as waitpid gives it.
  int end() {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
};

/// Appends what can be read; false at the end of the output.
bool drain(int descriptor, std::string& tail) {
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t got = read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 && errno == EAGAIN;
    tail.append(buffer.data(), static_cast<std::size_t>(got));
    if (tail.size() > kTailBytes) tail.erase(0, tail.size() - kTailBytes);
  }
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& argv, double seconds) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail_to_start("pipe");
  Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  fcntl(output.get(), F_SETFL, O_NONBLOCK);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  Child child(argv, nothing.get(), input.get());
  input.reset();

  ChildEnd end;
  bool open = true;
  while (!child.has_ended()) {
    if (interrupted()) throw Interrupted{};
    if (Clock::now() >= deadline) {
      end.kind = ChildEnd::Kind::kTimedOut;
      break;
    }
    // Once the output is closed the end is near: then this only sleeps.
    pollfd wait{.fd = open ? output.get() : -1, .events = POLLIN, .revents = 0};
    poll(&wait, 1, open ? kPollMs : 1);
    if (open) open = drain(output.get(), end.output);
  }
  const int status = child.end();
  drain(output.get(), end.output);
  if (end.kind == ChildEnd::Kind::kTimedOut) return end;
  end.kind = WIFSIGNALED(status) ? ChildEnd::Kind::kSignalled : ChildEnd::Kind::kExited;
  end.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

std::string to_string(const ChildEnd& end, double seconds) {
  switch (end.kind) {
    case ChildEnd::Kind::kTimedOut: return fmt::format("no answer within {} s", seconds);
    case ChildEnd::Kind::kSignalled: {
      const char* abbreviation = sigabbrev_np(end.value);
      return abbreviation != nullptr ? fmt::format("signal SIG{}", abbreviation)
                                     : fmt::format("signal {}", end.value);
    }
    case ChildEnd::Kind::kExited: break;
  }
  return fmt::format("exit status {}", end.value);
}

}  // namespace kda::harness
