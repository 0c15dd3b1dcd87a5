#pragma once

#include <cstdint>
#include <string>

namespace kda::harness {

/// "[DONE/TOTAL] NAME" on standard error: a line that rewrites itself and is gone at the end where
/// that is a terminal, nothing elsewhere.
void show_progress(std::int64_t done, std::int64_t total, const std::string& name);

}  // namespace kda::harness
