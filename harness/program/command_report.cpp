#include "harness/program/command.hpp"
#include "harness/program/data_folder.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace kda::harness {
namespace {

/// The program in Python that draws the page: beside the fixtures of an installed copy, else in the
/// source tree.
std::filesystem::path report_script() {
  const std::filesystem::path data = data_folder();
  const std::filesystem::path installed = data / "report/report.py";
  return std::filesystem::exists(installed) ? installed : data.parent_path() / "bench/report.py";
}

/// Becomes the Python program; returns only when that is not possible.
Exit report_command(const std::vector<std::string>& arguments) {
  // Debian's own comes first: it is the one that has Debian's matplotlib.
  const char* python = std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
  std::vector<std::string> words{python, report_script().string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(python, argv.data());
  print_error(std::string(python) + ": " + std::strerror(errno) +
              ". Fix: apt-get install -y python3 python3-matplotlib");
  return Exit::kUnavailable;
}

}  // namespace

void add_report_command(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("report", "Make one HTML page of the JSON of check, mutate and bench");
  command->set_help_flag();  // the Python program has its own
  command->prefix_command();
  command->callback([command, &context] { context.exit = report_command(command->remaining()); });
}

}  // namespace kda::harness
