#pragma once

#include "reference/types/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace kda::tests {

/// Bytes as a file without a place on a disk, for as long as this object lives.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("fuzz", 0)) {
    if (descriptor_ < 0 || write(descriptor_, data, size) != static_cast<ssize_t>(size)) {
      std::abort();  // the machine's fault: no finding may be lost to it
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::filesystem::path path() const {
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

/// Bad input is an Error with a code. Anything else that is thrown ends the fuzzer as a finding.
template <class Read>
int expect_error_or_success(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.message().empty() || error.fix().empty()) std::abort();
  }
  return 0;
}

}  // namespace kda::tests
