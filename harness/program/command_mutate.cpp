#include "harness/base/text_file.hpp"
#include "harness/compare/policy.hpp"
#include "harness/mutate/score_report.hpp"
#include "harness/program/command.hpp"
#include "harness/program/data_folder.hpp"
#include "harness/program/progress_line.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

struct MutateArguments {
  mutate::ScoreOptions score;
  std::string suite = (data_folder() / "mutate.txt").string();
  std::string json;
};

Exit mutate_command(const MutateArguments& arguments) {
  if (!arguments.score.policy.empty()) (void)find_policy(arguments.score.policy);
  const auto suite = mutate::read_suite(arguments.suite, data_folder() / "fixtures");
  const auto progress = [](std::size_t done, std::size_t total, const std::string& name) {
    show_progress(static_cast<std::int64_t>(done), static_cast<std::int64_t>(total), name);
  };
  mutate::ScoreOptions options = arguments.score;
  options.kernels = data_folder().parent_path() / "cuda" / "kernels";
  const mutate::MutationScore score = score_mutants(suite, options, progress);
  fmt::print("{}", to_text(score));
  const auto complaints = score.complaints();
  for (const std::string& complaint : complaints) print_error(complaint);
  if (!arguments.json.empty()) write_text(arguments.json, to_file_text(to_json(score)));
  if (score.mutants.empty()) return Exit::kUnavailable;
  return complaints.empty() ? Exit::kSuccess : Exit::kFailed;
}

}  // namespace

void add_mutate_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<MutateArguments>();
  CLI::App* command = app.add_subcommand(
      "mutate", "Run wrong kernels through the tests and count those that are noticed");
  command->add_option("--policy", arguments->score.policy,
                      "Policy that must notice them (default: the default policy)");
  command->add_option("--filter", arguments->score.filter, "Only mutants whose name matches");
  command->add_option("--suite", arguments->suite, "List of cases (default: data/mutate.txt)");
  command->add_option("--json", arguments->json, "Write a JSON report");
  command->add_option("--jobs", arguments->score.jobs, "Mutants run at once")
      ->check(CLI::Range(1, 1024));
  command->footer("docs/mutation.md explains the catalogue and the classes.");
  command->callback([arguments, &context] { context.exit = mutate_command(*arguments); });
}

}  // namespace kda::harness
