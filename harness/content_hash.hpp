#pragma once

#include "harness/hdf5_reader.hpp"
#include "harness/hdf5_type.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kda::harness {

/// The attribute of the root that holds the hash; itself never hashed.
inline constexpr std::string_view kContentHashName = "content_sha256";

/// One attribute (with a name) or dataset (without), as the hash sees it.
struct ContentRecord {
  std::string_view object;  ///< "/", "/inputs", "/inputs/q"
  std::string_view name;
  hdf5::ElementType type;
  const Shape& shape;
  std::span<const std::byte> data;  ///< row-major little-endian; strings: UTF-8 bytes
};

/// SHA-256 over records that come in order: by object, attributes before the dataset, by name.
class ContentHash {
 public:
  ContentHash();
  void add(const ContentRecord& record);
  /// Lower-case hex; ends the hash.
  [[nodiscard]] std::string finish();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  void update(std::span<const std::byte> bytes);

  std::unique_ptr<void, Free> context_;
};

/// The hash over a whole open file: the root, its datasets, its groups and their datasets. Throws
/// kNameUnknown for groups deeper down and kAttributeInvalid for attributes of foreign kinds.
[[nodiscard]] std::string content_sha256(const hdf5::Group& root);

}  // namespace kda::harness
