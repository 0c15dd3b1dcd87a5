#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace kda::harness {

/// Writes beside and renames, so that no half file has the name; a link stays and what it points
/// to is replaced. Throws kReportUnwritable and leaves nothing behind.
void write_text(const std::filesystem::path& file, std::string_view text);

/// JSON as files hold it: indented, bytes that are not UTF-8 replaced, a newline at the end.
[[nodiscard]] std::string to_file_text(const nlohmann::json& json);

}  // namespace kda::harness
