#pragma once

#include "harness/hdf5.hpp"
#include "harness/hdf5_attributes.hpp"
#include "harness/hdf5_chunk.hpp"
#include "harness/hdf5_type.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kda::harness::hdf5 {

/// A dataset of numbers, opened and judged but not read: its elements are all in this very file,
/// were written, and fit into what a file of this size may take.
class Dataset {
 public:
  /// `limit` = bytes that reading it may take. Throws kDatasetTypeUnsupported, kDatasetUnwritten or
  /// kFileUnreadable.
  Dataset(Handle id, Place place, std::uint64_t limit);

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] const Attributes& attributes() const noexcept { return attributes_; }
  [[nodiscard]] ElementType type() const noexcept { return stored_.element; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The elements, row-major and little-endian; `out` has room for bytes(). Throws
  /// kDatasetUnwritten for a missing chunk, kChecksumMismatch, or kFileUnreadable for other damage.
  void read(std::span<std::byte> out) const;

 private:
  [[nodiscard]] Shape read_shape() const;
  void judge_storage();
  /// Requires every chunk; decodes those that went through filters.
  void read_chunks(std::span<std::byte> out) const;
  /// Bytes that a chunk takes in the file.
  [[nodiscard]] std::size_t find_chunk(const std::vector<hsize_t>& offset) const;
  [[nodiscard]] std::vector<std::byte> read_chunk(const std::vector<hsize_t>& offset,
                                                  std::size_t bytes) const;

  Handle id_;
  Place place_;
  std::uint64_t limit_;
  Attributes attributes_;
  Handle type_;
  StoredType stored_{};
  Shape shape_;
  std::size_t bytes_ = 0;
  Shape chunk_;  ///< empty unless stored in chunks
  std::size_t chunk_bytes_ = 0;
  std::vector<Filter> filters_;
};

}  // namespace kda::harness::hdf5
