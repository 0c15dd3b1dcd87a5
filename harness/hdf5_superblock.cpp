#include "harness/hdf5_superblock.hpp"

#include "harness/hdf5.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace kda::harness::hdf5 {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

constexpr auto kSignature = "\x89HDF\r\n\x1a\n"sv;
using Head = std::array<char, 64>;  // enough of any superblock to reach its end-of-file address

std::string_view read_head(std::ifstream& stream, std::uint64_t offset, Head& buffer) {
  stream.clear();
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(buffer.data(), std::ssize(buffer));
  return {buffer.data(), static_cast<std::size_t>(stream.gcount())};
}

/// The end-of-file address, absolute as HDF5 stores it. Nothing if the head is cut before it or if
/// only the library can judge it.
std::optional<std::uint64_t> end_of_file(std::string_view head) {
  const auto byte = [head](std::size_t i) -> std::uint64_t {
    return i < head.size() ? static_cast<unsigned char>(head[i]) : 0;
  };
  const std::uint64_t version = byte(8);
  const std::size_t width = byte(version < 2 ? 13 : 9);  // bytes of an address
  if (version > 3 || (width != 2 && width != 4 && width != 8)) return std::nullopt;
  // The addresses start here with the base address; the end of file is the third.
  const std::size_t addresses = version == 0 ? 24 : version == 1 ? 28 : 12;
  std::uint64_t address = 0;
  for (std::size_t i = width; i-- > 0;) address = address << 8 | byte(addresses + 2 * width + i);
  return address;
}

}  // namespace

std::uint64_t check_superblock(const fs::path& file) {
  const Place place{file};
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    fail(ErrorCode::kFileUnreadable, place, "wanted a regular file");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(ErrorCode::kFileUnreadable, place, std::strerror(errno));
  const std::uint64_t size = fs::file_size(file);

  // The signature stands at byte 0 or, after a user block, at 512, 1024, 2048, ...
  Head buffer{};
  std::string_view head;
  for (std::uint64_t offset = 0; offset < size; offset = offset == 0 ? 512 : 2 * offset) {
    head = read_head(stream, offset, buffer);
    if (head.starts_with(kSignature)) break;
  }
  if (!head.starts_with(kSignature)) {
    fail(ErrorCode::kFileNotHdf5, place,
         fmt::format("wanted an HDF5 signature, got none in {} bytes", size));
  }
  if (head.size() < buffer.size()) {
    fail(ErrorCode::kFileTruncated, place,
         fmt::format("the file ends in its superblock, after {} bytes", size));
  }
  const std::optional<std::uint64_t> end = end_of_file(head);
  if (end && *end > size) {
    fail(ErrorCode::kFileTruncated, place, fmt::format("wanted {} bytes, got {}", *end, size));
  }
  return size;
}

}  // namespace kda::harness::hdf5
