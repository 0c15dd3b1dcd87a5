#include "harness/hdf5_chunk.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <fmt/format.h>
#include <zlib.h>

namespace kda::harness::hdf5 {
namespace {

constexpr std::size_t kChecksumBytes = 4;

/// Fletcher's checksum over big-endian 16-bit words, as HDF5 computes it.
std::uint32_t fletcher32(std::span<const std::byte> data) noexcept {
  std::uint64_t sum = 0;
  std::uint64_t sum_of_sums = 0;
  const auto add = [&](std::uint32_t word) {
    sum += word;
    sum = (sum & 0xFFFFU) + (sum >> 16);
    sum_of_sums += sum;
    sum_of_sums = (sum_of_sums & 0xFFFFU) + (sum_of_sums >> 16);
  };
  for (std::size_t i = 0; i + 1 < data.size(); i += 2) {
    add(std::to_integer<std::uint32_t>(data[i]) << 8 | std::to_integer<std::uint32_t>(data[i + 1]));
  }
  if (data.size() % 2 == 1) add(std::to_integer<std::uint32_t>(data.back()) << 8);
  return static_cast<std::uint32_t>(sum_of_sums << 16 | sum);
}

void verify(std::vector<std::byte>& data, const Place& place) {
  if (data.size() < kChecksumBytes) {
    fail(ErrorCode::kChecksumMismatch, place, "a chunk is too short for its checksum");
  }
  std::uint32_t stored = 0;
  std::memcpy(&stored, data.data() + data.size() - kChecksumBytes, kChecksumBytes);
  data.resize(data.size() - kChecksumBytes);
  const std::uint32_t computed = fletcher32(data);
  if (computed != stored) {
    fail(ErrorCode::kChecksumMismatch, place,
         fmt::format("Fletcher32: wanted {:08x}, got {:08x}", stored, computed));
  }
}

void inflate(std::vector<std::byte>& data, std::size_t most, const Place& place) {
  std::vector<std::byte> plain(most);
  uLongf length = most;
  const int status = uncompress(reinterpret_cast<Bytef*>(plain.data()), &length,
                                reinterpret_cast<const Bytef*>(data.data()), data.size());
  if (status != Z_OK) {
    fail_damaged(
        place,
        fmt::format("compressed data is damaged or inflates beyond its chunk of {} bytes", most));
  }
  plain.resize(length);
  data = std::move(plain);
}

/// The filter had put all first bytes of the values first, then all second bytes, and so on; a
/// rest shorter than a value stays as it is.
void unshuffle(std::vector<std::byte>& data, std::size_t value_size) {
  if (value_size < 2) return;
  const std::size_t count = data.size() / value_size;
  std::vector<std::byte> plain(data);
  for (std::size_t byte = 0; byte < value_size; ++byte) {
    for (std::size_t i = 0; i < count; ++i) plain[i * value_size + byte] = data[byte * count + i];
  }
  data = std::move(plain);
}

/// A box to copy from one dense array into another; strides in bytes.
struct Box {
  Shape extents;
  Shape from_strides;
  Shape to_strides;
};

void copy_box(const Box& box, std::size_t dim, const std::byte* from, std::byte* to,
              std::size_t element_size) {
  if (dim + 1 == box.extents.size()) {
    std::memcpy(to, from, static_cast<std::size_t>(box.extents[dim]) * element_size);
    return;
  }
  for (std::int64_t i = 0; i < box.extents[dim]; ++i) {
    copy_box(box, dim + 1, from + i * box.from_strides[dim], to + i * box.to_strides[dim],
             element_size);
  }
}

Shape byte_strides(const Shape& shape, std::size_t element_size) {
  Shape strides = dense_strides(shape);
  for (std::int64_t& stride : strides) stride *= static_cast<std::int64_t>(element_size);
  return strides;
}

}  // namespace

std::vector<Filter> read_filters(hid_t creation_properties, const Place& place) {
  const int count = H5Pget_nfilters(creation_properties);
  check(count >= 0, place, "read the filters");
  std::vector<Filter> filters;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::size_t num_values = 1;
    unsigned value = 0;
    std::array<char, 32> filter_name{};
    const H5Z_filter_t id =
        H5Pget_filter2(creation_properties, static_cast<unsigned>(i), &flags, &num_values, &value,
                       filter_name.size() - 1, filter_name.data(), nullptr);
    check(id >= 0, place, "read a filter");
    const bool known =
        id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_DEFLATE || id == H5Z_FILTER_FLETCHER32;
    if (!known || std::ranges::find(filters, id, &Filter::id) != filters.end()) {
      fail(ErrorCode::kDatasetTypeUnsupported, place,
           fmt::format("wanted no filters but shuffle, deflate and Fletcher32, each once; got "
                       "number {} ({})",
                       id, printable(filter_name.data())),
           "store the dataset without that filter");
    }
    filters.push_back({id, value});
  }
  return filters;
}

std::vector<std::byte> decode_chunk(std::vector<std::byte> stored,
                                    const std::vector<Filter>& filters, std::uint32_t skipped,
                                    std::size_t size, const Place& place) {
  for (std::size_t i = filters.size(); i-- > 0;) {
    if ((skipped >> i & 1U) != 0) continue;
    switch (filters[i].id) {
      case H5Z_FILTER_FLETCHER32: verify(stored, place); break;
      case H5Z_FILTER_DEFLATE: inflate(stored, size + kChecksumBytes, place); break;
      default: unshuffle(stored, filters[i].value_size);
    }
  }
  if (stored.size() != size) {
    fail_damaged(place,
                 fmt::format("wanted chunks of {} bytes, got one of {}", size, stored.size()));
  }
  return stored;
}

void ChunkGrid::scatter(std::span<const std::byte> chunk_data, const std::vector<hsize_t>& offset,
                        std::span<std::byte> out) const {
  Box box{shape, byte_strides(chunk, element_size), byte_strides(shape, element_size)};
  std::byte* to = out.data();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto begin = static_cast<std::int64_t>(offset[d]);
    box.extents[d] = std::min(chunk[d], shape[d] - begin);
    to += begin * box.to_strides[d];
  }
  copy_box(box, 0, chunk_data.data(), to, element_size);
}

bool ChunkGrid::advance(std::vector<hsize_t>& offset) const {
  for (std::size_t d = offset.size(); d-- > 0;) {
    offset[d] += static_cast<hsize_t>(chunk[d]);
    if (offset[d] < static_cast<hsize_t>(shape[d])) return true;
    offset[d] = 0;
  }
  return false;
}

}  // namespace kda::harness::hdf5
