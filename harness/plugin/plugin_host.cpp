#include "harness/plugin/plugin_host.hpp"

#include "harness/case/named_outputs.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/implementation/external.hpp"
#include "harness/plugin/plugin_run.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

namespace kda::harness {
namespace {

PluginAnswer fault(Verdict verdict, const char* code, std::string text) {
  return {{verdict, code, std::move(text)}, {}};
}

PluginAnswer load_and_run(const std::filesystem::path& file, const Case& test_case) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fault(Verdict::kSkipped, "plugin_unloadable", dlerror());
  using Get = const kdacheck_plugin* (*)();
  const auto get = reinterpret_cast<Get>(dlsym(library, "kdacheck_plugin_get"));
  const kdacheck_plugin* plugin = get == nullptr ? nullptr : get();
  if (plugin == nullptr || plugin->run == nullptr) {
    return fault(Verdict::kMalformed, "plugin_symbol",
                 "wanted kdacheck_plugin_get to return a plugin with a function, got none");
  }
  if (plugin->version != KDACHECK_PLUGIN_VERSION || plugin->memory > KDACHECK_CUDA) {
    return fault(Verdict::kMalformed, "plugin_version",
                 fmt::format("wanted version {} and memory 0 or 1, got {} and {}",
                             KDACHECK_PLUGIN_VERSION, plugin->version, plugin->memory));
  }
  try {
    return run_plugin_case(*plugin, test_case, cuda::open_gpu);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeviceUnavailable) throw;
    return fault(Verdict::kSkipped, "device_unavailable", error.message());
  }
}

void answer_in(const std::filesystem::path& folder, const std::filesystem::path& plugin) {
  const Case test_case = read_fixture(folder / "in.h5");
  PluginAnswer answer = load_and_run(plugin, test_case);
  if (answer.outputs) {
    write_result(folder / "out.h5", {.tensors = by_name(std::move(*answer.outputs)),
                                     .error = {},
                                     .message = {},
                                     .formats = {}});
  }
  write_reply(folder / "reply.json", answer.reply);
}

}  // namespace

void host_plugin(const std::filesystem::path& plugin, const std::filesystem::path& folder) {
  // A plugin that crashes dies by its signal, and not by the handler of a sanitizer in here.
  for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(fatal, SIG_DFL);
  try {
    answer_in(folder, plugin);
  } catch (const std::exception& error) {  // a full disk, no memory: not the plugin's fault
    fmt::print(stderr, "{}\n", error.what());
    std::fflush(stderr);
    _exit(kCannotRunHereStatus);
  }
  _exit(0);
}

}  // namespace kda::harness
