#include "harness/hdf5_dataset.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace kda::harness::hdf5 {
namespace {

constexpr const char* kKeepInFile = "store the data in the file itself, contiguous or in chunks";

/// Bytes of a block of this shape, or nothing beyond `limit`.
std::optional<std::size_t> bytes_within(const Shape& shape, std::size_t element_size,
                                        std::uint64_t limit) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::uint64_t bytes = element_size;
  for (const std::int64_t extent : shape) {
    if (static_cast<std::uint64_t>(extent) > limit / bytes) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

[[noreturn]] void fail_too_large(const Place& place, const char* what, const Shape& shape,
                                 std::uint64_t limit) {
  fail(ErrorCode::kFileUnreadable, place,
       fmt::format("{} of shape {} is more than the {} bytes that a file of this size may take",
                   what, to_string(shape), limit),
       "store the data with less compression");
}

}  // namespace

Dataset::Dataset(Handle id, Place place, std::uint64_t limit)
    : id_(std::move(id)),
      place_(std::move(place)),
      limit_(limit),
      attributes_(id_.get(), place_, limit),
      type_(own(H5Dget_type(id_.get()), place_, "read the type")) {
  judge_storage();
  const std::optional<StoredType> stored = classify(type_.get());
  if (!stored || stored->element == ElementType::kStr) {
    fail(ErrorCode::kDatasetTypeUnsupported, place_,
         "wanted numbers of a plain float or integer type, got " + describe(type_.get()));
  }
  stored_ = *stored;
  shape_ = read_shape();
  const std::size_t element_size = size_of(stored_.element);
  const std::optional<std::size_t> bytes = bytes_within(shape_, element_size, limit_);
  if (bytes == std::size_t{0}) return;

  const hsize_t written = H5Dget_storage_size(id_.get());
  if (written == 0) {
    fail(ErrorCode::kDatasetUnwritten, place_,
         fmt::format("wanted elements of shape {}, none were ever written", to_string(shape_)));
  }
  if (!bytes) fail_too_large(place_, "a dataset", shape_, limit_);
  bytes_ = *bytes;
  if (chunk_.empty()) {
    if (written != bytes_) {
      fail_damaged(place_, fmt::format("wanted {} bytes of storage, got {}", bytes_, written));
    }
    return;
  }
  if (chunk_.size() != shape_.size() || std::ranges::min(chunk_) < 1) {
    fail_damaged(place_, fmt::format("wanted chunks for shape {}, got {}", to_string(shape_),
                                     to_string(chunk_)));
  }
  // While a chunk is decoded it exists twice beside the tensor.
  const std::optional<std::size_t> chunk_bytes =
      bytes_within(chunk_, element_size, (limit_ - bytes_) / 2);
  if (!chunk_bytes) fail_too_large(place_, "a chunk", chunk_, limit_);
  chunk_bytes_ = *chunk_bytes;
}

void Dataset::judge_storage() {
  const Handle properties =
      own(H5Dget_create_plist(id_.get()), place_, "read the creation properties");
  const H5D_layout_t layout = H5Pget_layout(properties.get());
  const bool external = H5Pget_external_count(properties.get()) != 0;
  if (external || layout == H5D_VIRTUAL) {
    fail(ErrorCode::kFileUnreadable, place_,
         fmt::format("wanted data in this file, got {}",
                     external ? "external storage" : "a virtual dataset"),
         kKeepInFile);
  }
  if (layout != H5D_CHUNKED) return;
  unsigned options = 0;
  check(H5Pget_chunk_opts(properties.get(), &options) >= 0, place_, "read the chunk options");
  if (options != 0) {
    fail(ErrorCode::kDatasetTypeUnsupported, place_,
         "wanted the same filters on every chunk, got edge chunks without",
         "store the dataset without that option");
  }
  filters_ = read_filters(properties.get(), place_);
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = H5Pget_chunk(properties.get(), H5S_MAX_RANK, extents.data());
  check(rank > 0, place_, "read the chunk shape");
  chunk_.assign(extents.begin(), extents.begin() + rank);
}

Shape Dataset::read_shape() const {
  const Handle space = own(H5Dget_space(id_.get()), place_, "read the shape");
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
    fail(ErrorCode::kDatasetTypeUnsupported, place_, "wanted a shape, got a null dataspace");
  }
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  const int rank = H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  check(rank >= 0, place_, "read the shape");
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    const hsize_t extent = extents[static_cast<std::size_t>(d)];
    if (extent > std::numeric_limits<std::int64_t>::max()) {
      fail_damaged(place_, fmt::format("an extent of {} is no extent", extent));
    }
    shape.push_back(static_cast<std::int64_t>(extent));
  }
  return shape;
}

void Dataset::read(std::span<std::byte> out) const {
  if (bytes_ == 0) return;
  if (!chunk_.empty()) read_chunks(out);
  if (filters_.empty()) {
    // In the file's own type: no conversion by the library, which is not to be trusted with 16-bit
    // floats.
    const herr_t status =
        H5Dread(id_.get(), type_.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data());
    check(status >= 0, place_, "read the dataset");
  }
  if (stored_.big_endian) swap_bytes(out, size_of(stored_.element));
}

void Dataset::read_chunks(std::span<std::byte> out) const {
  const ChunkGrid grid{shape_, chunk_, size_of(stored_.element)};
  std::vector<hsize_t> offset(shape_.size(), 0);
  hsize_t total = 0;
  do {
    const std::size_t stored = find_chunk(offset);
    total += stored;
    if (!filters_.empty()) grid.scatter(read_chunk(offset, stored), offset, out);
  } while (grid.advance(offset));
  const hsize_t written = H5Dget_storage_size(id_.get());
  if (total != written) {
    fail_damaged(place_, fmt::format("wanted chunks of {} bytes in all, got {}", total, written));
  }
}

std::size_t Dataset::find_chunk(const std::vector<hsize_t>& offset) const {
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(id_.get(), offset.data(), &bytes) >= 0) return bytes;
  // It fails both for a chunk that is not there and for a damaged index.
  unsigned skipped = 0;
  haddr_t address = HADDR_UNDEF;
  const herr_t status =
      H5Dget_chunk_info_by_coord(id_.get(), offset.data(), &skipped, &address, &bytes);
  check(status >= 0 && address == HADDR_UNDEF, place_, "find a chunk");
  fail(ErrorCode::kDatasetUnwritten, place_,
       fmt::format("the chunk at ({}) was never written", fmt::join(offset, ", ")));
}

std::vector<std::byte> Dataset::read_chunk(const std::vector<hsize_t>& offset,
                                           std::size_t bytes) const {
  if (bytes > limit_ - bytes_ - chunk_bytes_) {
    fail_too_large(place_, "a stored chunk", {static_cast<std::int64_t>(bytes)}, limit_);
  }
  std::vector<std::byte> stored(bytes);
  std::uint32_t skipped = 0;
  check(H5Dread_chunk(id_.get(), H5P_DEFAULT, offset.data(), &skipped, stored.data()) >= 0, place_,
        "read a chunk");
  return decode_chunk(std::move(stored), filters_, skipped, chunk_bytes_, place_);
}

}  // namespace kda::harness::hdf5
