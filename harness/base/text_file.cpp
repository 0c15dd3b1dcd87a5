#include "harness/base/text_file.hpp"

#include "reference/types/error.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <unistd.h>

namespace kda::harness {
namespace {

namespace fs = std::filesystem;

/// Where a path leads when all its last links are followed, be there a file or not.
fs::path behind_links(fs::path file) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(file, error); ++i) {
    const fs::path to = fs::read_symlink(file, error);
    if (error) break;
    file = to.is_absolute() ? to : file.parent_path() / to;
  }
  return file;
}

}  // namespace

void write_text(const fs::path& file, std::string_view text) {
  // A file that is no plain file (a terminal, a pipe, /dev/null) cannot be renamed onto.
  std::error_code ignored;
  const bool in_place = fs::exists(file, ignored) && !fs::is_regular_file(file, ignored);
  const fs::path place = in_place ? file : behind_links(file);
  fs::path target = place;
  if (!in_place) target += ".part" + std::to_string(getpid());
  const auto fail = [&](const std::string& why) {
    if (!in_place) fs::remove(target, ignored);
    throw Error(ErrorCode::kReportUnwritable, file.string() + ": " + why);
  };
  errno = 0;
  std::ofstream out(target, std::ios::binary);
  if (!out) fail(std::strerror(errno));
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) fail(errno != 0 ? std::strerror(errno) : "could not write all of it");
  if (in_place) return;
  std::error_code renamed;
  fs::rename(target, place, renamed);
  if (renamed) fail(renamed.message());
}

std::string to_file_text(const nlohmann::json& json) {
  // File names need not be UTF-8; JSON must be.
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace kda::harness
