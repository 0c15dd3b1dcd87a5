#pragma once

#include "harness/hdf5.hpp"
#include "harness/hdf5_type.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness::hdf5 {

/// Collects the content of a file, then writes it in one go. The same content gives the same bytes:
/// no times, no order of calls. Datasets get Fletcher32 where they can (not empty, not scalar).
class Writer {
 public:
  void add_group(std::string_view object) { groups_.emplace_back(object); }
  void add_text(std::string_view object, std::string_view name, std::string_view value);
  void add_real(std::string_view object, std::string_view name, double value);
  /// Stored as `type`: i32, i64 or u8.
  void add_integer(std::string_view object, std::string_view name, ElementType type,
                   std::int64_t value);
  /// The tensor's elements must live until `write`.
  void add_tensor(std::string_view object, const Tensor& tensor);

  /// SHA-256 over what was added.
  [[nodiscard]] std::string content_sha256();

  /// Writes beside `file` and renames. Throws kFileUnwritable and leaves nothing behind. Needs a
  /// Session.
  void write(const std::filesystem::path& file);

 private:
  struct Record {
    std::string object;
    std::string name;  ///< empty for a dataset
    ElementType type;
    Shape shape;
    std::vector<std::byte> value;         ///< of an attribute
    std::span<const std::byte> elements;  ///< of a dataset

    [[nodiscard]] std::span<const std::byte> data() const noexcept {
      return name.empty() ? elements : std::span<const std::byte>(value);
    }
  };

  void add_attribute(std::string_view object, std::string_view name, ElementType type,
                     std::span<const std::byte> value);
  void sort();
  void write_attribute(hid_t file, const Record& record, const Place& place) const;
  void write_dataset(hid_t file, const Record& record, const Place& place) const;

  std::vector<std::string> groups_;
  std::vector<Record> records_;
};

}  // namespace kda::harness::hdf5
