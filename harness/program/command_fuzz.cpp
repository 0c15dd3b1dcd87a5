#include "harness/base/interrupt.hpp"
#include "harness/base/shell_quote.hpp"
#include "harness/case/case_line.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/fuzz/fuzz.hpp"
#include "harness/implementation/external.hpp"
#include "harness/program/command.hpp"
#include "harness/program/decimal.hpp"
#include "harness/program/device_option.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr const char* kFuzzExamples = R"(Examples:
  kdacheck fuzz --impl cuda-recurrent --seconds 60
  kdacheck fuzz --impl plugin:./my_kernel.so --seed 7 --cases 500 --out found/)";

constexpr const char* kShrinkExamples = R"(Examples:
  kdacheck shrink failing.h5 --impl exec:'python3 run.py {in} {out}'
  kdacheck shrink "op=recurrent_kda T=300 H=8 K=64 V=64 seed=3" --impl plugin:./my.so -o small.h5)";

struct FuzzArguments {
  std::string implementation;
  ExternalOptions external;
  std::string policy;
  std::string formats;
  std::string device = "auto";
  FuzzOptions fuzz;
  std::string folder = ".";
  std::string input;  ///< of shrink: a fixture or a case line
  std::string out = "shrunk.h5";
  ShrinkLimits limits;
};

Implementation chosen(const FuzzArguments& arguments) {
  return is_external(arguments.implementation)
             ? make_external(arguments.implementation, arguments.external)
             : find_implementation(arguments.implementation);
}

/// From --policy, --formats and --device.
Judging judging(const FuzzArguments& arguments) {
  Judging judging;
  if (!arguments.policy.empty()) judging.policy = &find_policy(arguments.policy);
  if (!arguments.formats.empty()) judging.formats = parse_formats(arguments.formats);
  judging.kernels.device = device_choice(arguments.device);
  return judging;
}

/// What makes `check` judge as this command did.
std::string repeat_arguments(const FuzzArguments& arguments) {
  std::string text = " --impl " + shell_quoted(arguments.implementation);
  if (is_external(arguments.implementation))
    text += fmt::format(" --timeout {}", arguments.external.timeout);
  if (!arguments.policy.empty()) text += " --policy " + shell_quoted(arguments.policy);
  if (!arguments.formats.empty()) text += " --formats " + shell_quoted(arguments.formats);
  if (arguments.device != "auto") text += " --device " + arguments.device;
  return text;
}

void print_shrunk(const Shrunk& shrunk, const std::string& file, const FuzzArguments& arguments,
                  const std::string& program) {
  fmt::print("    shrunk to {}: {} of {} times {}{}\n    repeat: {} check {}{}\n",
             describe(shrunk.smallest), shrunk.votes, shrunk.of_votes, name(shrunk.verdict),
             shrunk.exhausted ? "; the search was cut short" : "", program, shell_quoted(file),
             repeat_arguments(arguments));
}

Exit fuzz_command(FuzzArguments& arguments, const std::string& program) {
  arguments.fuzz.judging = judging(arguments);
  arguments.fuzz.folder = arguments.folder;
  std::error_code failed;
  std::filesystem::create_directories(arguments.fuzz.folder, failed);
  if (failed) {
    throw Error(ErrorCode::kFileUnwritable, "--out: wanted a folder that can be made, got " +
                                                arguments.folder + ": " + failed.message());
  }
  const Implementation implementation = chosen(arguments);
  std::size_t shown = 0;
  const FuzzReport report = fuzz(implementation, arguments.fuzz, [&](const FuzzReport& so_far) {
    for (; shown < so_far.failures.size(); ++shown) {
      const FuzzFailure& failure = so_far.failures[shown];
      fmt::print("{}  {}\n    {}\n", name(failure.verdict), failure.line, failure.detail);
      print_shrunk(failure.shrunk, failure.file.string(), arguments, program);
      std::fflush(stdout);
    }
  });
  fmt::print(
      "{}: {} cases, {} failed, {} mistrusted, {} not served; {} pairs of options{}; seed {}\n",
      arguments.implementation, report.cases, report.failures.size(), report.mistrusted,
      report.unsupported, report.pairs, report.all_pairs ? ", no new one in 200 draws" : "",
      arguments.fuzz.seed);
  if (report.interrupted) return Exit::kInterrupted;
  if (!report.failures.empty()) return Exit::kFailed;
  return report.cases == 0 ? Exit::kUnavailable : Exit::kSuccess;
}

/// A file if there is one of this name, else a case line.
Case read_input(const std::string& input) {
  if (std::filesystem::exists(input) || input.find('=') == std::string::npos)
    return read_fixture(input);
  return make_case(parse_case_line(input));
}

Exit shrink_command(const FuzzArguments& arguments, const std::string& program) {
  const Case input = read_input(arguments.input);
  if (!contract_of(input.op)) {
    throw Error(ErrorCode::kImplementationUnsupported,
                arguments.input + ": expected a KDA case, got op " + std::string(name(input.op)),
                "shrink takes calls of KDA kernels");
  }
  const Implementation implementation = chosen(arguments);
  Shrunk shrunk;
  const InterruptGuard guard;
  try {
    shrunk = shrink(std::get<KdaCase>(input.inputs), judged_by(implementation, judging(arguments)),
                    arguments.limits);
  } catch (const Interrupted&) {
    return Exit::kInterrupted;
  }
  write_shrunk(arguments.out, shrunk.smallest, "shrunk from: " + input.name);
  fmt::print("{}: {}\n", arguments.out, name(shrunk.verdict));
  print_shrunk(shrunk, arguments.out, arguments, program);
  return Exit::kFailed;  // the implementation does fail
}

void add_common(CLI::App& command, FuzzArguments& arguments) {
  command
      .add_option("--impl", arguments.implementation,
                  "Implementation to judge: a name, exec:COMMAND or plugin:PATH")
      ->required();
  command.add_option("--policy", arguments.policy, "Comparison policy");
  command.add_option("--formats", arguments.formats, kFormatsHelp);
  add_device_option(command, arguments.device);
  command
      .add_option("--timeout", arguments.external.timeout,
                  "Seconds a case of exec: or plugin: may take")
      ->check(seconds(0.01))
      ->capture_default_str();
}

}  // namespace

void add_fuzz_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<FuzzArguments>();
  CLI::App* command =
      app.add_subcommand("fuzz", "Judge an implementation on drawn cases; shrink what fails");
  add_common(*command, *arguments);
  FuzzOptions& fuzz = arguments->fuzz;
  command->add_option("--seconds", fuzz.seconds, "Time to search")
      ->check(seconds(0.01))
      ->capture_default_str();
  command
      ->add_option("--shrink-seconds", fuzz.shrink_seconds,
                   "Time to shrink one failure, which counts into --seconds; the last one may "
                   "begin just before they are over")
      ->check(seconds(0.01))
      ->capture_default_str();
  command->add_option("--cases", fuzz.cases, "Most cases; 0 = no limit")->transform(decimal(0));
  command->add_option("--seed", fuzz.seed, "Seed of the draws")->transform(decimal(0));
  command->add_option("--failures", fuzz.most_failures, "Failures after which to stop")
      ->transform(decimal(1));
  command->add_option("--out", arguments->folder, "Folder for shrunken cases");
  command->footer(kFuzzExamples);
  command->callback(
      [arguments, &context] { context.exit = fuzz_command(*arguments, context.program); });
}

void add_shrink_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<FuzzArguments>();
  CLI::App* command =
      app.add_subcommand("shrink", "Make a failing case as small and plain as it goes");
  command->add_option("CASE", arguments->input, "Fixture or case line that fails")->required();
  add_common(*command, *arguments);
  command
      ->add_option("--seconds", arguments->limits.seconds,
                   "Time after which no call begins but a last one")
      ->check(seconds(0.01))
      ->capture_default_str();
  command->add_option("--judgements", arguments->limits.judgements, "Most calls")
      ->transform(decimal(1));
  command->add_option("-o,--out", arguments->out, "Fixture to write");
  command->footer(kShrinkExamples);
  command->callback(
      [arguments, &context] { context.exit = shrink_command(*arguments, context.program); });
}

}  // namespace kda::harness
