#include "harness/fit/fit_run.hpp"
#include "harness/program/command.hpp"
#include "harness/program/decimal.hpp"

#include <iostream>
#include <memory>

namespace kda::harness {
namespace {

constexpr const char* kFitExamples =
    R"(SAMPLES: two columns, length in tokens and latency in ms (CSV; '#' starts a comment), or
{"seq_lens": [...], "latencies_ms": [...]} (JSON), or a log with SGLang's "seq_lens=[...],
latencies_ms=[...]", or an HDF5 fixture. The first sample is the cold start and is dropped.

Examples:
  kdacheck fit samples.csv --base-chunk 8192
  kdacheck fit server.log --base-chunk 8192 --prompt 100000 --context 131072 --plot fit.svg

Exit status: 0 fitted, 1 no usable fit or target, 2 bad usage or unreadable input.)";

constexpr const char* kPredictExamples = R"(Examples:
  kdacheck predict --a 2e-7 --b 0.02 --base-chunk 6144 --history 0
  kdacheck predict --a 2e-7 --b 0.02 --base-chunk 8192 --history 65536 --context 131072

Exit status: 0 and the chunk size on standard output, 1 no answer, 2 bad usage.)";

/// Options that both commands know.
template <class Command>
void add_query_options(CLI::App& app, Command& command) {
  app.add_option("--page", command.page_size, "Page size; chunks are multiples of max(page, 64)")
      ->transform(decimal(1))
      ->capture_default_str();
  app.add_option("--context", command.context_len, "Context length (default: unlimited)")
      ->transform(decimal(0));
  app.add_option("--max-chunk", command.max_chunk_size, "Largest chunk size (default: none)")
      ->transform(decimal(0));
  app.add_option("--smooth", command.smooth_factor,
                 "Smoothing: 0 keeps the base, 1 takes the solution as it is")
      ->capture_default_str();
}

}  // namespace

void add_fit_command(CLI::App& app, CommandContext& context) {
  auto fit = std::make_shared<FitCommand>();
  CLI::App* command =
      app.add_subcommand("fit", "Fit f(l) = a l^2 + b l + c to profiled prefill latencies");
  command->add_option("SAMPLES", fit->samples, "Samples: CSV, JSON, log or fixture")->required();
  command
      ->add_option("--base-chunk", fit->base_chunk_size,
                   "Chunk size whose latency becomes the target")
      ->transform(decimal());
  command
      ->add_option("--prompt", fit->prompt_len,
                   "Print the chunk schedule of a prompt of this many tokens")
      ->transform(decimal(0));
  add_query_options(*command, *fit);
  command->add_option("--resamples", fit->resamples, "Bootstrap resamples; 0 = no intervals")
      ->capture_default_str()
      ->check(CLI::Range(0, 10'000'000))
      ->transform(decimal(0));
  command->add_option("--seed", fit->seed, "Seed of the bootstrap")
      ->capture_default_str()
      ->transform(decimal(0));
  command->add_option("--confidence", fit->confidence, "Of the intervals")->capture_default_str();
  command->add_option("--json", fit->json, "Write all that was found as JSON");
  command->add_option("--plot", fit->plot, "Write samples, fit, band and schedule as SVG");
  command->footer(kFitExamples);
  command->callback([fit, &context] { context.exit = run_fit(*fit, std::cout, std::cerr); });
}

void add_predict_command(CLI::App& app, CommandContext& context) {
  auto predict = std::make_shared<PredictCommand>();
  CLI::App* command = app.add_subcommand("predict", "Predict one chunk size from a fit");
  command->add_option("--a", predict->a, "ms per token^2")->required();
  command->add_option("--b", predict->b, "ms per token")->required();
  command->add_option("--base-chunk", predict->base_chunk_size, "Base chunk size")
      ->required()
      ->transform(decimal());
  command->add_option("--history", predict->history_len, "Tokens already done")
      ->required()
      ->transform(decimal(0));
  add_query_options(*command, *predict);
  command->add_option("--target", predict->target_latency,
                      "Target latency in ms (default: that of the base chunk)");
  command->footer(kPredictExamples);
  command->callback(
      [predict, &context] { context.exit = run_predict(*predict, std::cout, std::cerr); });
}

}  // namespace kda::harness
