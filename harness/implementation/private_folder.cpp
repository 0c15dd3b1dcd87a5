#include "harness/implementation/private_folder.hpp"

#include "reference/types/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace kda::harness {

PrivateFolder::PrivateFolder() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string name = (error ? "/tmp" : parent) / "kdacheck-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(ErrorCode::kFileUnwritable,
                name + ": cannot make a temporary folder: " + std::strerror(errno),
                "set TMPDIR to a writable folder with room");
  }
  path_ = name;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kda::harness
