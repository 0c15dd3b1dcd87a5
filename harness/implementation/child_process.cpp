#include "harness/implementation/child_process.hpp"

#include "harness/base/interrupt.hpp"
#include "harness/implementation/supervisor.hpp"
#include "reference/types/error.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
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

/// A supervisor with the program below it; on destruction all of them are killed.
class Child {
 public:
  Child(const std::vector<std::string>& argv, int nothing, int output) {
    std::vector<char*> pointers;
    pointers.reserve(argv.size() + 1);
    for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.data()));
    pointers.push_back(nullptr);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail_to_start("pipe");
    report_.emplace(ends[0]);
    const Descriptor to_report(ends[1]);
    sigset_t terminate;
    sigset_t before;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &terminate, &before);
    pid_ = fork();
    if (pid_ == 0) supervise({pointers.data(), nothing, output, to_report.get()});
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    if (pid_ < 0) fail_to_start("fork");
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) end();
  }

  /// Still a zombie then, so that its number cannot be another process's yet.
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

  /// Kills whatever still runs and waits for it.
  void end() {
    kill(pid_, SIGTERM);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }

  /// The status of the program as waitpid gives it, once it has ended by itself.
  [[nodiscard]] int status() const {
    SupervisedEnd end;
    ssize_t got = 0;
    while ((got = read(report_->get(), &end, sizeof end)) < 0 && errno == EINTR) {
    }
    errno = end.error;
    if (end.error != 0) fail_to_start("fork");
    // Somebody ended the supervisor, and what it watched with it.
    return got == sizeof end ? end.status : SIGKILL;
  }

 private:
  pid_t pid_ = 0;
  std::optional<Descriptor> report_;
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
  child.end();
  drain(output.get(), end.output);
  if (end.kind == ChildEnd::Kind::kTimedOut) return end;
  const int status = child.status();
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
