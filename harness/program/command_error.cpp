#include "harness/program/command.hpp"

#include <algorithm>
#include <cstdio>

namespace kda::harness {

void print_error(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  // Not fmt::print, which throws where standard error cannot be written: there is nobody to tell.
  std::fputs(("kdacheck: " + text + "\n").c_str(), stderr);
}

}  // namespace kda::harness
