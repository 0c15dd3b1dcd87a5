#include "harness/program/command.hpp"
#include "harness/program/command_reports.hpp"
#include "harness/report/merge.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kda::harness {
namespace {

constexpr const char* kExamples = R"(Examples:
  kdacheck check --shard 1/2 --json shard1.json    on one machine
  kdacheck check --shard 2/2 --json shard2.json    on another
  kdacheck merge shard1.json shard2.json -o check.json --junit check.xml)";

struct MergeArguments {
  std::vector<std::string> shards;
  ReportFiles files;
};

Exit merge_command(const MergeArguments& arguments) {
  std::vector<StoredReport> shards;
  for (const std::string& file : arguments.shards) shards.push_back(read_report(file));
  const StoredReport whole = merge_shards(std::move(shards));
  return deliver(whole.report, nlohmann::json(whole.environment), arguments.files);
}

}  // namespace

void add_merge_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand(
      "merge", "Put the results of check --shard I/N --json together, as one run");
  command->add_option("SHARD", arguments->shards, "JSON of every shard of a run, in any order")
      ->required();
  command->add_option("-o,--json", arguments->files.json, "Write the JSON report of the whole")
      ->required();
  command->add_option("--junit", arguments->files.junit, "Write a JUnit XML report of the whole");
  command->footer(kExamples);
  command->callback([arguments, &context] { context.exit = merge_command(*arguments); });
}

}  // namespace kda::harness
