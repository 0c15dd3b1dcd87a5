#include "harness/case/case_line.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/program/command.hpp"
#include "harness/run/oracle.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

constexpr const char* kExamples = R"(Examples:
  kdacheck gen --op kda_prefill --T 130 --gate bound --l2norm --final_state -o case.h5
  kdacheck gen --op chunk_kda --lens 5,0,64 --H 2 --HV 4 --K 64 --V 32 --dtype f32 --seed 7 -o case.h5
  kdacheck gen --op kda_prefill --chunk 32 -o refused.h5     (expects chunk_size_unsupported))";

/// Keys of a case line that take a value, with their help.
constexpr auto kValues = std::to_array<std::pair<const char*, const char*>>({
    {"B", "Batch rows"},
    {"T", "Tokens"},
    {"H", "Query/key heads"},
    {"HV", "Value heads"},
    {"K", "Key head dimension"},
    {"V", "Value head dimension"},
    {"lens", "Sequence lengths of a packed batch: 5,0,7"},
    {"dtype", "Of q, k, v: bf16, f16, f32"},
    {"g_dtype", "Of g"},
    {"beta_dtype", "Of beta"},
    {"chunk", "chunk_size"},
    {"scale", "Scale of o"},
    {"gate", "none, softplus or bound"},
    {"lower_bound", "Of the bounded gate"},
    {"family", "Input family"},
    {"seed", "Seed of the inputs"},
});

constexpr auto kFlags =
    std::to_array<const char*>({"safe_gate", "l2norm", "beta_sigmoid", "neg_eigval", "v_first",
                                "initial_state", "final_state", "h"});

struct GenArguments {
  std::string op;
  std::string name;
  std::string out;
  std::map<std::string, std::string> values;
  std::map<std::string, bool> flags;
};

std::string case_line(const GenArguments& arguments) {
  std::string line = "op=" + arguments.op;
  for (const auto& [key, value] : arguments.values) {
    if (!value.empty()) line += fmt::format(" {}={}", key, value);
  }
  for (const auto& [key, on] : arguments.flags) {
    if (on) line += fmt::format(" {}=1", key);
  }
  return line;
}

/// Names stand in reports and in a text attribute of the file.
void require_name(const std::string& name) {
  using nlohmann::json;
  const bool control =
      std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  const std::string valid = json(name).dump(-1, ' ', true, json::error_handler_t::ignore);
  if (!control && json::parse(valid) == json(name)) return;
  throw Error(ErrorCode::kUsage, "--name: wanted one line of UTF-8 text, got " + valid);
}

Exit gen_command(const GenArguments& arguments) {
  if (!arguments.name.empty()) require_name(arguments.name);
  Case made = make_case(parse_case_line(case_line(arguments)));
  const std::string_view oracle = oracle_for(std::get<KdaCase>(made.inputs), "");
  made.expected = expected_from(made, oracle);
  made.oracle = oracle_name(oracle);
  made.description = std::exchange(made.line, "");
  made.name = arguments.name.empty() ? std::filesystem::path(arguments.out).stem().string()
                                     : arguments.name;
  write_fixture(arguments.out, made);
  if (made.expected->error)
    fmt::print("{}: the contract refuses this case: {}\n", arguments.out, *made.expected->error);
  return Exit::kSuccess;
}

}  // namespace

void add_gen_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<GenArguments>();
  CLI::App* command = app.add_subcommand("gen", "Write a fixture with the reference's answer");
  command->add_option("--op", arguments->op, "kda_prefill, chunk_kda or recurrent_kda")->required();
  for (const auto& [key, help] : kValues)
    command->add_option(std::string("--") + key, arguments->values[key], help);
  for (const char* flag : kFlags)
    command->add_flag(std::string("--") + flag, arguments->flags[flag]);
  command->add_option("--name", arguments->name, "Name of the case (default: that of the file)");
  command->add_option("-o,--out", arguments->out, "File to write")->required();
  command->footer(kExamples);
  command->callback([arguments, &context] { context.exit = gen_command(*arguments); });
}

}  // namespace kda::harness
