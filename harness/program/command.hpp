#pragma once

#include "harness/base/verdict.hpp"

#include <string>

#include <CLI/CLI.hpp>

namespace kda::harness {

/// Shared by the subcommands; each sets `exit` when it has run.
struct CommandContext {
  Exit exit = Exit::kSuccess;
  std::string program;  ///< how the user called this program, for repeat commands
};

inline constexpr const char* kFormatsHelp =
    "Number formats of the implementation, which make its bound: PLACE=FORMAT,... of operands, "
    "triangle, solve, accumulation, gate, state, output and bf16, f16, tf32, bf16x2, f32, f64; "
    "state=FORMAT/token; block=N; a format alone is for the operands (default: operands as q is "
    "stored, o as v, the rest f32)";

/// "kdacheck: TEXT" on standard error, in one line whatever the text holds.
void print_error(std::string text);

/// Each adds one subcommand with its options and help. What it throws (Error) is bad input: main
/// prints the one line and exits with 2.
void add_bench_command(CLI::App& app, CommandContext& context);
void add_check_command(CLI::App& app, CommandContext& context);
void add_compare_command(CLI::App& app, CommandContext& context);
void add_fuzz_command(CLI::App& app, CommandContext& context);
void add_gen_command(CLI::App& app, CommandContext& context);
void add_list_command(CLI::App& app, CommandContext& context);
void add_merge_command(CLI::App& app, CommandContext& context);
void add_mutate_command(CLI::App& app, CommandContext& context);
void add_fit_command(CLI::App& app, CommandContext& context);
void add_predict_command(CLI::App& app, CommandContext& context);
void add_report_command(CLI::App& app, CommandContext& context);
void add_shrink_command(CLI::App& app, CommandContext& context);
/// Hidden: the child process of `--impl plugin:`.
void add_plugin_host_command(CLI::App& app, CommandContext& context);

}  // namespace kda::harness
