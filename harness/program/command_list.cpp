#include "harness/case/case_line.hpp"
#include "harness/compare/policy.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/plan/plan_text.hpp"
#include "harness/program/command.hpp"
#include "harness/program/data_folder.hpp"
#include "reference/types/contract.hpp"

#include <memory>
#include <string>

#include <fmt/format.h>

namespace kda::harness {
namespace {

void list_implementations() {
  for (const Implementation& implementation : all_implementations()) {
    std::string ops;
    for (const Op op : implementation.ops) ops += (ops.empty() ? "" : ", ") + std::string(name(op));
    fmt::print("{:<16} {}\n{:<16} serves {}\n", implementation.name, implementation.description, "",
               ops);
    const std::string formats = to_string(implementation.formats);
    if (!formats.empty()) fmt::print("{:<16} states {}\n", "", formats);
  }
}

Exit list_fixtures(const std::string& path) {
  Exit exit = Exit::kSuccess;
  for (const auto& file :
       find_fixtures(path.empty() ? data_folder() / "fixtures" : std::filesystem::path(path))) {
    try {
      const Case fixture = read_fixture(file);
      fmt::print("{:<40} {:<14} {}\n", fixture.name, name(fixture.op), fixture.description);
    } catch (const Error& error) {
      print_error(error.what());
      exit = Exit::kBadInput;
    }
  }
  return exit;
}

void list_errors() {
  for (const ErrorInfo& row : all_errors()) {
    fmt::print("{}  {:<32} {}\n{:38}Fix: {}\n", static_cast<int>(row.code), row.name, row.meaning,
               "", row.fix);
  }
}

void list_contracts() {
  for (const Contract contract :
       {Contract::kKdaPrefill, Contract::kChunkKda, Contract::kRecurrentKda}) {
    fmt::print("{}: the first broken rule is raised\n", name(contract));
    int number = 0;
    for (const Rule& rule : rules(contract)) {
      fmt::print("  {:>2}. {:<30} {}\n", ++number, name(rule.code), rule.when);
    }
  }
}

void list_policies() {
  for (const Policy& policy : all_policies())
    fmt::print("{:<10} {}\n", policy.name, policy.meaning);
}

/// What the kernels would do with a case, and what that costs on the GPUs the model knows.
Exit list_plan(const std::string& line) {
  if (line.empty()) {
    throw Error(ErrorCode::kUsage, "list plan: expected --case LINE, got none",
                "give a case line, as in --case \"op=kda_prefill T=8192 H=64\"");
  }
  fmt::print("{}", plan_text(parse_case_line(line)));
  return Exit::kSuccess;
}

Exit list_command(const std::string& what, const std::string& path, const std::string& line) {
  if (what == "plan") return list_plan(line);
  if (what == "fixtures") return list_fixtures(path);
  if (what == "impls") list_implementations();
  if (what == "errors") list_errors();
  if (what == "contracts") list_contracts();
  if (what == "policies") list_policies();
  return Exit::kSuccess;
}

}  // namespace

void add_list_command(CLI::App& app, CommandContext& context) {
  struct Arguments {
    std::string what;
    std::string path;
    std::string line;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("list", "Print what there is");
  command
      ->add_option("WHAT", arguments->what, "impls, fixtures, errors, contracts, policies or plan")
      ->required()
      ->check(CLI::IsMember({"impls", "fixtures", "errors", "contracts", "policies", "plan"}));
  command->add_option("PATH", arguments->path,
                      "For fixtures: a folder or file (default: the bundled fixtures)");
  command->add_option("--case", arguments->line,
                      "For plan: a case line; prints bytes, blocks and modelled times");
  command->callback([arguments, &context] {
    context.exit = list_command(arguments->what, arguments->path, arguments->line);
  });
}

}  // namespace kda::harness
