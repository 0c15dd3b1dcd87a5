#include "harness/program/command.hpp"
#include "harness/program/command_reports.hpp"
#include "harness/program/data_folder.hpp"
#include "harness/program/decimal.hpp"
#include "harness/program/device_option.hpp"
#include "harness/program/progress_line.hpp"
#include "harness/run/run.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr const char* kExamples = R"(Examples:
  kdacheck check                                    every implementation on the bundled fixtures
  kdacheck check my_fixtures/ --impl cuda-prefill   one implementation on a folder
  kdacheck check --impl cuda-recurrent --exec-order pct --exec-seeds 8 --cp-async both
  kdacheck check --impl 'exec:python3 my_kernel.py {in} {out}' --timeout 30   (docs/check-your-kernel.md)
  kdacheck check --filter 'prefill_*' --junit r.xml
  kdacheck check --case "op=chunk_kda T=200 H=2 HV=4 K=64 V=64 l2norm=1 final_state=1 seed=7"
  kdacheck check --cases data/cases/ci.txt --shard 2/4 --jobs 2)";

struct CheckArguments {
  std::vector<std::string> paths;
  std::vector<std::string> case_files;
  std::optional<std::string> shard;
  ReportFiles files;
  std::string formats;
  std::string capsules;
  std::string device = "auto";
  std::string order = "inorder";
  std::string copies = "late";
  RunOptions run;
};

void parse_shard(const std::string& text, RunOptions& options) {
  const auto is_whole = [](std::string_view part, std::int64_t& value) {
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc{} && stop == part.data() + part.size();
  };
  const std::string_view both = text;
  const std::size_t slash = std::min(both.find('/'), both.size());
  if (!is_whole(both.substr(0, slash), options.shard_index) ||
      !is_whole(both.substr(std::min(slash + 1, both.size())), options.shard_count)) {
    throw Error(ErrorCode::kUsage, "--shard: expected I/N, got " + text,
                "count shards from 1, as in --shard 1/3");
  }
}

/// The settings, and the arguments that repeat them where they are not the default.
void set_kernels(const CheckArguments& arguments, RunOptions& options) {
  using cuda::simt::Order;
  const std::map<std::string, Order> orders{{"inorder", Order::kInOrder},
                                            {"reverse", Order::kReverse},
                                            {"random", Order::kRandom},
                                            {"pct", Order::kPct}};
  const std::map<std::string, CopyTiming> copies{
      {"late", CopyTiming::kLate}, {"eager", CopyTiming::kEager}, {"both", CopyTiming::kBoth}};
  options.kernels.device = device_choice(arguments.device);
  options.kernels.order = orders.at(arguments.order);
  options.kernels.copies = copies.at(arguments.copies);
  std::string text;
  const auto add = [&text](const std::string& option, const std::string& value) {
    text += (text.empty() ? "" : " ") + option + " " + value;
  };
  if (arguments.device != "auto") add("--device", arguments.device);
  if (arguments.order != "inorder") add("--exec-order", arguments.order);
  if (options.kernels.seeds != 1) add("--exec-seeds", std::to_string(options.kernels.seeds));
  if (arguments.copies != "late") add("--cp-async", arguments.copies);
  options.kernel_arguments = text;
}

Exit check_command(CheckArguments& arguments) {
  RunOptions& options = arguments.run;
  set_kernels(arguments, options);
  if (!arguments.formats.empty()) options.formats = parse_formats(arguments.formats);
  options.capsules = arguments.capsules;
  if (arguments.shard) parse_shard(*arguments.shard, options);
  options.paths.assign(arguments.paths.begin(), arguments.paths.end());
  options.case_files.assign(arguments.case_files.begin(), arguments.case_files.end());
  if (options.paths.empty() && options.case_lines.empty() && options.case_files.empty()) {
    options.paths.push_back(data_folder() / "fixtures");
  }
  const RunReport report = run(options, show_progress);
  return deliver(report, environment(), arguments.files);
}

/// How the CPU executor schedules kernels.
void add_executor_options(CLI::App& command, CheckArguments& arguments) {
  command
      .add_option("--exec-order", arguments.order,
                  "Order in which the executor runs threads: inorder, reverse, random, pct")
      ->check(CLI::IsMember({"inorder", "reverse", "random", "pct"}));
  command
      .add_option("--exec-seeds", arguments.run.kernels.seeds,
                  "Schedules of a seeded order (random, pct)")
      ->check(CLI::Range(1, 1000000))
      ->transform(decimal());
  command
      .add_option("--cp-async", arguments.copies,
                  "When the executor completes asynchronous copies: late, eager, both")
      ->check(CLI::IsMember({"late", "eager", "both"}));
}

}  // namespace

void add_check_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<CheckArguments>();
  RunOptions& run = arguments->run;
  CLI::App* command =
      app.add_subcommand("check", "Judge implementations on fixtures and case lines");
  command->add_option(
      "PATH", arguments->paths,
      "Fixture files, or folders searched for *.h5 (default: the bundled fixtures)");
  command
      ->add_option(
          "--impl", run.implementations,
          "Implementation to judge: a name (see list impls), plugin:PATH.so, or exec:COMMAND "
          "with {in} and {out}; repeatable (default: all that serve the case)")
      ->allow_extra_args(false);
  command->add_option("--policy", run.policy,
                      "Comparison policy (default: exact for f64 results, else derived)");
  command->add_option("--formats", arguments->formats, kFormatsHelp);
  command->add_option("--case", run.case_lines, "Case described in one line; repeatable")
      ->allow_extra_args(false);
  command->add_option("--cases", arguments->case_files, "File with case lines; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--laws", run.laws,
                    "Also check laws that need no right answer: causality to the bit, split runs,"
                    " permuted heads, repeats, ...");
  command->add_option("--filter", run.filter, "Only cases whose name matches this glob");
  command->add_option("--junit", arguments->files.junit, "Write a JUnit XML report");
  command->add_option("--json", arguments->files.json, "Write a JSON report");
  command->add_option("--jobs", run.jobs, "Cases judged at once")
      ->check(CLI::Range(1, 1024))
      ->transform(decimal());
  command
      ->add_option("--timeout", run.external.timeout,
                   "Seconds that a case may take in an exec: or plugin: implementation")
      ->check(seconds(0.01))
      ->capture_default_str();
  command->add_option("--repeat", run.repeats, "Calls per case, which must give the same bits")
      ->check(CLI::Range(1, 1000000))
      ->transform(decimal());
  command->add_option(
      "--known-failures", run.known_failures,
      "JSON list of failures that are known, each with a reason and an expiry date");
  command->add_option("--capsules", arguments->capsules,
                      "Folder in which to save failed cases, to be judged again with compare");
  command->add_option("--shard", arguments->shard,
                      "Only every N-th case, beginning with the I-th: I/N; see kdacheck merge");
  add_device_option(*command, arguments->device);
  add_executor_options(*command, *arguments);
  command->footer(kExamples);
  command->callback([arguments, &context] {
    arguments->run.program = context.program;
    context.exit = check_command(*arguments);
  });
}

}  // namespace kda::harness
