#include "harness/program/progress_line.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace kda::harness {

void show_progress(std::int64_t done, std::int64_t total, const std::string& name) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal) return;
  const std::string shown = name.size() > 60 ? "..." + name.substr(name.size() - 57) : name;
  fmt::print(stderr, "\r\033[K[{}/{}] {}", done, total, shown);
  if (done == total) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace kda::harness
