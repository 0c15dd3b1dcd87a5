#pragma once

#include "harness/hdf5.hpp"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kda::harness::hdf5 {

/// One step of what was done to a chunk before it was stored.
struct Filter {
  H5Z_filter_t id;      ///< shuffle, deflate or Fletcher32
  unsigned value_size;  ///< shuffle: bytes of the values whose bytes were sorted
};

/// The filters of a dataset, first applied first. Throws kDatasetTypeUnsupported for any but
/// shuffle, deflate and Fletcher32, each at most once.
[[nodiscard]] std::vector<Filter> read_filters(hid_t creation_properties, const Place& place);

/// Undoes the filters of a stored chunk; bit i of `skipped` says that filter i was left out. Done
/// here and not by the library, which lets a compressed chunk grow without bound: this never
/// allocates more than `size` bytes, the size of every chunk, and a checksum. Throws
/// kChecksumMismatch, or kFileUnreadable for damaged compressed data.
[[nodiscard]] std::vector<std::byte> decode_chunk(std::vector<std::byte> stored,
                                                  const std::vector<Filter>& filters,
                                                  std::uint32_t skipped, std::size_t size,
                                                  const Place& place);

/// How chunks tile a dataset. Chunks at its upper edges reach beyond it.
struct ChunkGrid {
  Shape shape;  ///< of the dataset, nowhere 0
  Shape chunk;
  std::size_t element_size;

  /// Copies the part of the chunk at `offset` that lies inside the dataset to its place in `out`.
  void scatter(std::span<const std::byte> chunk_data, const std::vector<hsize_t>& offset,
               std::span<std::byte> out) const;

  /// Moves `offset` to the next chunk in row-major order; false after the last.
  bool advance(std::vector<hsize_t>& offset) const;
};

}  // namespace kda::harness::hdf5
