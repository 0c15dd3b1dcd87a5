// probe_in_child for the fuzzers. A child that dies inside libhdf5 is an error of the file, as in
// the program; one that dies by our own doing must be a finding, and not be taken for the other.
#include "harness/fixture/hdf5.hpp"
#include "harness/fixture/hdf5_probe.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
/// What libhdf5 leaks when it meets damage. That we close what we open is asked of it directly.
const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }
/// libFuzzer's counters of what was executed.
extern std::uint8_t __start___sancov_cntrs;
extern std::uint8_t __stop___sancov_cntrs;
}

// Where it hangs is printed as a crash would be. In no namespace of ours, so that it is not taken
// for us.
static void print_where(int) {
  __sanitizer_print_stack_trace();
  _exit(1);
}

namespace kda::harness::hdf5 {
namespace {

long library_crashes = 0;

std::span<std::uint8_t> counters() { return {&__start___sancov_cntrs, &__stop___sancov_cntrs}; }

/// What the child leaves behind: the code of the Error that it met, then its counters.
struct Shared {
  std::uint16_t code;
  std::uint8_t counters[1];  // as many as there are
};

Shared& shared() {
  static Shared* const memory = [] {
    (void)std::atexit([] {
      std::fprintf(stderr, "crashes of the HDF5 library, each an error of the file: %ld\n",
                   library_crashes);
    });
    void* place = mmap(nullptr, sizeof(Shared) + counters().size(), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) std::abort();
    return static_cast<Shared*>(place);
  }();
  return *memory;
}

[[noreturn]] void read_and_exit(const std::function<void()>& read, int report) {
  const rlimit processor{2, 4};
  setrlimit(RLIMIT_CPU, &processor);
  std::signal(SIGXCPU, print_where);
  __sanitizer_set_death_callback([] {});  // libFuzzer's would save the input as a finding
  dup2(report, STDERR_FILENO);
  try {
    read();
  } catch (const Error& error) {
    if (error.message().empty() || error.fix().empty()) std::abort();
    shared().code = static_cast<std::uint16_t>(error.code());
  }
  std::ranges::copy(counters(), shared().counters);
  _exit(0);
}

std::string text_of(int file) {
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
  if (pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) text.clear();
  return text;
}

/// Whose the first frame of a stack is that is neither a sanitizer's nor the C library's. A frame:
/// "    #1 0x7f.. in NAME FILE:LINE" or "    #1 0x7f..  (/lib/libhdf5_serial.so.103+0x..)".
bool stack_is_ours(std::string_view stack) {
  while (!stack.empty()) {
    const std::size_t end = stack.find('\n');
    const std::string_view frame = stack.substr(0, end);
    if (frame.find("    #") == std::string_view::npos) return false;  // the stack is over
    if (frame.find("libhdf5") != std::string_view::npos) return false;
    if (frame.find(" in kda::") != std::string_view::npos) return true;
    stack.remove_prefix(end == std::string_view::npos ? stack.size() : end + 1);
  }
  return false;
}

/// UBSan reports none but our code. Of AddressSanitizer's reports, ours are those that happen in
/// our code and those about memory that our code provided. No stack at all says nothing in our
/// favour.
bool is_ours(std::string_view report) {
  constexpr std::string_view kFirst = "    #0 ";
  if (report.find("runtime error:") != std::string_view::npos) return true;
  if (report.find(kFirst) == std::string_view::npos) return true;
  for (std::size_t at = report.find(kFirst); at != std::string_view::npos;
       at = report.find(kFirst, at + 1)) {
    if (stack_is_ours(report.substr(at))) return true;
  }
  return false;
}

}  // namespace

void probe_in_child(const std::filesystem::path& file, const std::function<void()>& read) {
  shared().code = 0;
  const int report = memfd_create("report", 0);
  const pid_t child = report < 0 ? -1 : fork();
  if (child < 0) std::abort();
  if (child == 0) read_and_exit(read, report);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string text = text_of(report);
  close(report);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    std::ranges::transform(counters(), std::span(shared().counters, counters().size()),
                           counters().begin(), [](auto a, auto b) { return std::max(a, b); });
    if (shared().code != 0)
      throw Error(static_cast<ErrorCode>(shared().code), "refused in the child");
    return;
  }
  if (is_ours(text)) {
    std::fprintf(stderr, "%s\na child ended with wait status %d\n", text.c_str(), status);
    std::abort();
  }
  ++library_crashes;
  fail_damaged(Place{file}, "the HDF5 library crashes on reading it");
}

}  // namespace kda::harness::hdf5
