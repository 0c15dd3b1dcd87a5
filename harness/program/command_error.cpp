#include "harness/program/command.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kda::harness {

void print_error(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  fmt::print(stderr, "kdacheck: {}\n", text);
}

}  // namespace kda::harness
