#include "harness/report/report.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <unistd.h>

namespace kda::harness {

void write_text(const std::filesystem::path& file, std::string_view text) {
  // A file that is no plain file (a terminal, a pipe, /dev/null) cannot be renamed onto.
  std::error_code ignored;
  const bool in_place =
      std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored);
  std::filesystem::path target = file;
  if (!in_place) target += ".part" + std::to_string(getpid());
  const auto fail = [&](const std::string& why) {
    if (!in_place) std::filesystem::remove(target, ignored);
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
  std::filesystem::rename(target, file, renamed);
  if (renamed) fail(renamed.message());
}

}  // namespace kda::harness
