#pragma once

#include <filesystem>

namespace kda::harness {

/// Where the bundled fixtures and case lists lie: `../share/kdacheck` of the running program when
/// it was installed, else `data/` of the source tree that it was built from.
[[nodiscard]] std::filesystem::path data_folder();

}  // namespace kda::harness
