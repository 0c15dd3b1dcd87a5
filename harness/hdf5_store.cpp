#include "harness/hdf5_store.hpp"

#include "harness/hdf5.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace kda::harness::hdf5 {
namespace {

namespace fs = std::filesystem;

/// ".NAME.PID-N.part": no other writer's, and not taken for a fixture if we die before the rename.
fs::path temporary_name(const fs::path& file) {
  static std::atomic<int> counter{0};
  return file.parent_path() /
         fmt::format(".{}.{}-{}.part", file.filename().string(), getpid(), counter++);
}

/// Open for writing; closed and removed on destruction unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const fs::path& target)
      : place_{target},
        path_(temporary_name(target)),
        descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    require(descriptor_ >= 0, "create");
  }
  ~Temporary() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      require(written > 0, "write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    require(fsync(descriptor_) == 0, "sync");
  }

  void rename_to_target() {
    require(close(std::exchange(descriptor_, -1)) == 0, "close");
    require(rename(path_.c_str(), place_.file.c_str()) == 0, "rename");
    path_.clear();
  }

 private:
  void require(bool succeeded, const char* doing) const {
    if (succeeded) return;
    fail(ErrorCode::kFileUnwritable, place_,
         fmt::format("cannot {} {}: {}", doing, path_.string(), std::strerror(errno)));
  }

  Place place_;
  fs::path path_;
  int descriptor_;
};

}  // namespace

void replace_file(const fs::path& file, std::span<const std::byte> bytes) {
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(file, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there)) {  // a rename would destroy it
    fail(ErrorCode::kFileUnwritable, Place{file},
         "wanted a plain file or a new name, got something else");
  }
  Temporary temporary(file);
  temporary.write(bytes);
  temporary.rename_to_target();
}

}  // namespace kda::harness::hdf5
