#pragma once

#include "harness/implementation/implementation.hpp"

#include <string>
#include <string_view>

namespace kda::harness {

/// How implementations that are not built into this program are run.
struct ExternalOptions {
  double timeout = 60;  ///< seconds a case may take, with starting the process and reading files
};

/// Exit status of a program that cannot be run here, as automake, meson and CTest have it.
inline constexpr int kCannotRunHereStatus = 77;

/// True for "exec:COMMAND" and "plugin:PATH".
[[nodiscard]] bool is_external(std::string_view name);

/// Somebody else's kernel as an implementation; it serves the KDA ops. Each case is run in a child
/// process, in a private folder that is removed afterwards:
///
///   exec:COMMAND   run by /bin/sh with {in} and {out} replaced by the names of a fixture without
///                  /expected and of the result to write
///   plugin:PATH    a shared library (plugin/kdacheck_plugin.h), loaded by `kdacheck plugin-host`
///
/// What it does wrong is thrown as Fault (fault.hpp), what it refuses as Refusal. A status of 77
/// says that it cannot be run here (kSkipped). Throws kUsage for a command without {in} or {out}
/// and for another name, kPathNotFound for a plugin that is not there.
[[nodiscard]] Implementation make_external(const std::string& name, const ExternalOptions& options);

}  // namespace kda::harness
