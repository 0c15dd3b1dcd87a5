#pragma once

#include <string>

namespace kda::harness {

/// As a POSIX shell reads it back: plain where nothing needs quoting.
[[nodiscard]] std::string shell_quoted(const std::string& text);

}  // namespace kda::harness
