#pragma once

#include <cstdint>
#include <filesystem>

namespace kda::harness::hdf5 {

/// Looks at the first bytes of a file before the library does, so that "no HDF5 file" and "cut off"
/// can be told apart from other damage. Returns the size of the file in bytes.
/// Throws kFileUnreadable, kFileNotHdf5 or kFileTruncated.
std::uint64_t check_superblock(const std::filesystem::path& file);

}  // namespace kda::harness::hdf5
