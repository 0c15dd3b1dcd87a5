#include "harness/base/environment.hpp"
#include "harness/base/text_file.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/program/command.hpp"
#include "harness/run/judge.hpp"

#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

constexpr const char* kExamples = R"(Examples:
  kdacheck compare result.h5 data/fixtures/prefill_fused_bound_t64.h5
  kdacheck compare result.h5 my_case.h5 --formats f32
  kdacheck compare result.h5 my_case.h5 --policy fla --json verdict.json)";

struct CompareArguments {
  std::string result;
  std::string fixture;
  std::string policy;
  std::string formats;
  std::string json;
};

Exit compare_command(const CompareArguments& arguments) {
  // A result's f64 may be somebody's way of storing bf16, so the dtype does not choose the policy.
  Judging judging;
  judging.policy = &find_policy(arguments.policy.empty() ? "derived" : arguments.policy);
  if (!arguments.formats.empty()) judging.formats = parse_formats(arguments.formats);
  Case fixture = read_fixture(arguments.fixture);
  fixture.file = arguments.fixture;
  if (!contract_of(fixture.op)) {
    throw Error(
        ErrorCode::kImplementationUnsupported,
        arguments.fixture + ": expected a KDA fixture, got op " + std::string(name(fixture.op)),
        "compare takes tensors; fit and predict fixtures are for kdacheck check");
  }
  const Result result = read_result(arguments.result);
  if (!judging.formats && !result.formats.empty()) judging.formats = parse_formats(result.formats);
  const CaseResult verdict =
      judge_result(fixture, result.tensors, result.error, result.message, judging);

  fmt::print("{}: {}", name(verdict.verdict), fixture.name);
  if (!verdict.code.empty()) fmt::print("  {}", verdict.code);
  if (!verdict.detail.empty()) fmt::print("\n  {}", verdict.detail);
  fmt::print("\n");
  if (verdict.comparison) fmt::print("{}", to_text(*verdict.comparison));
  fmt::print("{}", verdict.diagnosis);

  if (!arguments.json.empty()) {
    nlohmann::json json{{"format", "kdacheck-comparison"},  {"version", 1},
                        {"environment", environment()},     {"result", arguments.result},
                        {"fixture", arguments.fixture},     {"name", fixture.name},
                        {"verdict", name(verdict.verdict)}, {"code", verdict.code},
                        {"detail", verdict.detail},         {"diagnosis", verdict.diagnosis}};
    if (verdict.comparison) json["comparison"] = to_json(*verdict.comparison);
    write_text(arguments.json, to_file_text(json));
  }
  return verdict.verdict == Verdict::kPassed ? Exit::kSuccess : Exit::kFailed;
}

}  // namespace

void add_compare_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command =
      app.add_subcommand("compare", "Judge a result made elsewhere against a fixture");
  command
      ->add_option("RESULT", arguments->result,
                   "HDF5 file with o, and final_state and h where asked for")
      ->required();
  command->add_option("FIXTURE", arguments->fixture, "The fixture that the result answers")
      ->required();
  command->add_option("--policy", arguments->policy, "Comparison policy (default: derived)");
  command->add_option("--formats", arguments->formats, kFormatsHelp);
  command->add_option("--json", arguments->json, "Write the verdict as JSON");
  command->footer(kExamples);
  command->callback([arguments, &context] { context.exit = compare_command(*arguments); });
}

}  // namespace kda::harness
