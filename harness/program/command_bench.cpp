#include "harness/base/text_file.hpp"
#include "harness/bench/bench_compare.hpp"
#include "harness/bench/bench_program.hpp"
#include "harness/bench/bench_text.hpp"
#include "harness/bench/counter_compare.hpp"
#include "harness/bench/counter_run.hpp"
#include "harness/bench/interleave.hpp"
#include "harness/program/command.hpp"
#include "harness/program/progress_line.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

constexpr const char* kExamples = R"(Examples:
  kdacheck bench --quick --json new.json            the small shapes, under 2 minutes
  kdacheck bench --filter 'gpu/*' --json gpu.json   kernels on a GPU
  kdacheck bench --compare base.json new.json       exit 1 when something is slower
  kdacheck bench --interleave fast reference        A B A, round by round
  kdacheck bench --interleave old/kdacheck_bench new/kdacheck_bench --filter 'impl/fast/*'
  kdacheck bench --counters --json counters.json    exact, compared with --compare as well)";

struct BenchArguments {
  BenchRun run;
  std::string json;
  bool counters = false;
  std::string ptxas;
  std::vector<std::string> compare;
  std::string again;
  std::vector<std::string> interleave;
  std::string metric = "real";
};

void write_json(const std::string& file, const nlohmann::json& json) {
  if (!file.empty()) write_text(file, to_file_text(json));
}

Metric metric_of(const BenchArguments& arguments) {
  return arguments.metric == "cpu" ? Metric::kCpuTime : Metric::kRealTime;
}

Exit count(const BenchArguments& arguments) {
  const nlohmann::json report = counter_report(
      counter_cases(),
      arguments.ptxas.empty() ? ptxas_folder() : std::filesystem::path(arguments.ptxas));
  fmt::print("{}", counter_text(report));
  write_json(arguments.json, report);
  return Exit::kSuccess;
}

/// Counter files and files of times look different.
bool is_counters(const nlohmann::json& json) {
  return json.is_object() && json.contains("format") && json["format"] == kCounterFormat;
}

template <class Comparison>
Exit show(const BenchArguments& arguments, const Comparison& comparison) {
  fmt::print("{}", to_text(comparison));
  write_json(arguments.json, to_json(comparison));
  return comparison.exit_status();
}

Exit compare(const BenchArguments& arguments) {
  const std::string& base = arguments.compare[0];
  const std::string& changed = arguments.compare[1];
  const nlohmann::json a = read_json(base);
  const nlohmann::json b = read_json(changed);
  if (is_counters(a) || is_counters(b))
    return show(arguments, compare_counters(a, b, base, changed));
  const Metric metric = metric_of(arguments);
  const BenchFile a_file = parse_bench_file(a, base, metric);
  const BenchFile b_file = parse_bench_file(b, changed, metric);
  if (arguments.again.empty()) return show(arguments, compare_speed(a_file, b_file));
  const BenchFile again = parse_bench_file(read_json(arguments.again), arguments.again, metric);
  return show(arguments, compare_speed(a_file, b_file, &again));
}

Exit interleave_command(const BenchArguments& arguments) {
  Interleave wanted;
  wanted.first = arguments.interleave[0];
  wanted.second = arguments.interleave[1];
  wanted.run = arguments.run;
  wanted.metric = metric_of(arguments);
  if (!std::filesystem::is_regular_file(wanted.first)) wanted.run.program = find_bench_program();
  wanted.progress = [](int number, int of) { show_progress(number, of, ""); };
  return show(arguments, interleave(wanted));
}

Exit measure(BenchArguments& arguments) {
  arguments.run.program = find_bench_program();
  const nlohmann::json results = run_benchmarks(arguments.run);
  const BenchFile file = parse_bench_file(results, "kdacheck_bench", metric_of(arguments));
  fmt::print("{}", to_text(file));
  write_json(arguments.json, results);
  if (count_failed(file) != 0) return Exit::kFailed;
  for (const BenchLine& line : file.lines)
    if (line.problem.empty()) return Exit::kSuccess;
  return Exit::kUnavailable;
}

Exit bench_command(BenchArguments& arguments) {
  if (arguments.counters) return count(arguments);
  if (!arguments.compare.empty()) return compare(arguments);
  if (!arguments.interleave.empty()) return interleave_command(arguments);
  return measure(arguments);
}

}  // namespace

void add_bench_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command =
      app.add_subcommand("bench", "Time implementations, count what kernels do, compare two runs");
  command->add_flag("--quick", arguments->run.quick, "Small shapes, and a short time for each");
  command->add_option("--filter", arguments->run.filter,
                      "Only benchmarks whose name matches this glob (with --interleave of "
                      "implementations: whose shape does)");
  auto* repetitions =
      command
          ->add_option("--repetitions", arguments->run.repetitions,
                       "Repetitions of each benchmark, or rounds (default 9; 5 with --quick)")
          ->check(CLI::Range(1, 1000));
  command->add_option("--json", arguments->json,
                      "Write the results (Google Benchmark's JSON), counters or comparison");
  command->add_option("--metric", arguments->metric, "Time that is compared: real or cpu")
      ->check(CLI::IsMember({"real", "cpu"}));
  auto* counters = command->add_flag("--counters", arguments->counters,
                                     "Count what kernels do, exactly, on the CPU executor");
  command->add_option("--ptxas", arguments->ptxas,
                      "Folder with *.ptxas.txt (default: of this build)");
  auto* compare = command
                      ->add_option("--compare", arguments->compare,
                                   "BASE.json NEW.json, both of times or both of counters")
                      ->expected(2);
  command->add_option("--aa", arguments->again,
                      "With --compare: a second run of BASE's program, for the band of equals");
  auto* interleave = command
                         ->add_option("--interleave", arguments->interleave,
                                      "Two bench programs, or two implementations, in turn")
                         ->expected(2);
  counters->excludes(compare)->excludes(interleave);
  compare->excludes(interleave);
  command->footer(kExamples);
  command->callback([arguments, repetitions, &context] {
    if (arguments->run.quick && repetitions->count() == 0 && arguments->interleave.empty())
      arguments->run.repetitions = 5;
    context.exit = bench_command(*arguments);
  });
}

}  // namespace kda::harness
