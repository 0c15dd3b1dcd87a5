#pragma once

#include <filesystem>

namespace kda::harness {

/// A new folder below the system's temporary one that only this user can enter; removed with all
/// that lies in it on destruction.
class PrivateFolder {
 public:
  /// Throws kFileUnwritable.
  PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kda::harness
