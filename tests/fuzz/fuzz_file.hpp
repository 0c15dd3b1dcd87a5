#pragma once

#include "reference/types/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <hdf5.h>
#include <unistd.h>

namespace kda::tests {

/// Bytes as a file, in memory where the system has /dev/shm, for as long as this object lives.
class InputFile {
 public:
  InputFile(const std::uint8_t* data, std::size_t size) {
    const std::filesystem::path shared = "/dev/shm";
    const std::filesystem::path folder =
        std::filesystem::exists(shared) ? shared : std::filesystem::temp_directory_path();
    path_ = folder / ("kdacheck_fuzz_" + std::to_string(getpid()));
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    if (!out.flush()) std::abort();  // the machine's fault: no finding may be lost to it
  }
  ~InputFile() { std::filesystem::remove(path_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// How many inputs were accepted; printed at the end, since a fuzzer whose seeds are all refused at
/// the door tests the door.
inline long& accepted() {
  static long count = [] {
    (void)std::atexit([] { std::fprintf(stderr, "inputs accepted: %ld\n", accepted()); });
    return 0L;
  }();
  return count;
}

/// Bad input is an Error with a code. Anything else that is thrown ends the fuzzer as a finding.
template <class Read>
int expect_error_or_success(Read read) {
  long& count = accepted();
  try {
    read();
    ++count;
  } catch (const Error& error) {
    if (error.message().empty() || error.fix().empty()) std::abort();
  }
  return 0;
}

/// Nothing of any HDF5 file stays open when a reader is done with it.
inline void expect_all_closed() {
  for (const unsigned kind :
       {H5F_OBJ_FILE, H5F_OBJ_DATASET, H5F_OBJ_GROUP, H5F_OBJ_DATATYPE, H5F_OBJ_ATTR}) {
    const ssize_t open = H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), kind);
    if (open == 0) continue;
    std::fprintf(stderr, "%zd HDF5 objects of kind %u left open\n", open, kind);
    std::abort();
  }
}

}  // namespace kda::tests
