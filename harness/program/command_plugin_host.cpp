#include "harness/plugin/plugin_host.hpp"
#include "harness/program/command.hpp"

#include <memory>
#include <string>

namespace kda::harness {

void add_plugin_host_command(CLI::App& app, CommandContext&) {
  struct Arguments {
    std::string plugin;
    std::string folder;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("plugin-host", "What check runs in a child process to call a plugin");
  command->group("");  // not for users
  command->add_option("PLUGIN", arguments->plugin)->required();
  command->add_option("FOLDER", arguments->folder)->required();
  command->callback([arguments] { host_plugin(arguments->plugin, arguments->folder); });
}

}  // namespace kda::harness
