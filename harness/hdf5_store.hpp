#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace kda::harness::hdf5 {

/// Puts `bytes` in the place of `file`: written to a hidden file in the same folder, synced, then
/// renamed, so that whoever looks sees the old file or the whole new one. Throws kFileUnwritable,
/// and then removes the hidden file.
void replace_file(const std::filesystem::path& file, std::span<const std::byte> bytes);

}  // namespace kda::harness::hdf5
