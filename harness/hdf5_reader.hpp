#pragma once

#include "harness/hdf5.hpp"
#include "harness/hdf5_attributes.hpp"
#include "harness/hdf5_dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness::hdf5 {

/// A group whose members are all in this file: soft, external and user-defined links are refused
/// (kFileUnreadable), so that a fixture never makes the program open another file.
class Group {
 public:
  Group(Handle id, Place place, std::uint64_t limit);

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] Attributes attributes() const { return {id_.get(), place_, limit_}; }
  /// Names, sorted.
  [[nodiscard]] const std::vector<std::string>& members() const noexcept { return members_; }
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool is_group(const std::string& name) const;

  /// Nothing when there is no such member; kDatasetTypeUnsupported when it is something else.
  [[nodiscard]] std::optional<Group> group(const std::string& name) const;
  /// `held` = bytes that the caller keeps of this file already.
  [[nodiscard]] std::optional<Dataset> dataset(const std::string& name,
                                               std::uint64_t held = 0) const;

 private:
  [[nodiscard]] Handle open(const std::string& name) const;

  Handle id_;
  Place place_;
  std::uint64_t limit_;
  std::vector<std::string> members_;
};

/// Opens a file for reading and returns its root group, which keeps the file open. What reading
/// may allocate is limited to 1000 times the file's size, at least 64 MiB. Throws
/// kFileUnreadable, kFileNotHdf5 or kFileTruncated. Needs a Session.
[[nodiscard]] Group open_file(const std::filesystem::path& file);

}  // namespace kda::harness::hdf5
