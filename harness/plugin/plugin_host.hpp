#pragma once

#include <filesystem>

namespace kda::harness {

/// What `kdacheck plugin-host PLUGIN FOLDER` does: reads FOLDER/in.h5, calls the plugin, writes
/// FOLDER/out.h5 and FOLDER/reply.json. Never returns: what is left of the plugin is not unloaded.
[[noreturn]] void host_plugin(const std::filesystem::path& plugin,
                              const std::filesystem::path& folder);

}  // namespace kda::harness
