#include "harness/program/data_folder.hpp"

#include <system_error>

namespace kda::harness {

std::filesystem::path data_folder() {
  std::error_code missing;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", missing);
  auto installed = program.parent_path().parent_path() / "share/kdacheck";
  if (!missing && std::filesystem::is_directory(installed / "fixtures", missing)) return installed;
  return KDA_DATA_FOLDER;
}

}  // namespace kda::harness
