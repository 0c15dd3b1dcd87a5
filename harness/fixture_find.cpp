#include "harness/fixture.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace kda::harness {
namespace {

namespace fs = std::filesystem;

/// Files and dangling links (reading says what is wrong with those); no folders, pipes, devices.
bool may_be_fixture(const fs::directory_entry& entry) {
  if (entry.path().extension() != ".h5") return false;
  std::error_code error;
  const fs::file_type type = entry.status(error).type();
  return type == fs::file_type::regular || type == fs::file_type::not_found;
}

}  // namespace

std::vector<fs::path> find_fixtures(const fs::path& path) {
  std::vector<fs::path> files;
  try {
    if (!fs::exists(path)) {
      throw Error(ErrorCode::kPathNotFound,
                  fmt::format("wanted a file or a folder, got {}", path.string()));
    }
    if (!fs::is_directory(path)) return {path};
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
      if (may_be_fixture(entry)) files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::kPathNotFound,
                fmt::format("cannot search {}: {}", path.string(), error.code().message()));
  }
  if (files.empty()) {
    throw Error(ErrorCode::kNoFixtures, fmt::format("wanted *.h5 in {}, got none", path.string()));
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace kda::harness
