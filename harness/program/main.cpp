#include "harness/program/command.hpp"
#include "harness/version.hpp"
#include "reference/types/error.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

namespace {

using kda::harness::CommandContext;
using kda::harness::Exit;
using kda::harness::print_error;

constexpr const char* kExamples = R"(Examples:
  kdacheck check                                  every implementation on the bundled fixtures
  kdacheck compare result.h5 fixture.h5           a result that was made elsewhere
  kdacheck gen --op chunk_kda --T 100 -o case.h5  a new fixture
  kdacheck fit samples.csv --base-chunk 8192      a latency model
  kdacheck merge 1.json 2.json -o check.json      shards of one run
  kdacheck report check.json -o report.html       one page of it all
  kdacheck bench --quick                          times; --counters, --compare
  kdacheck list contracts                         what the entry points accept

Exit status: 0 all passed, 1 something failed, 2 bad usage or unreadable input,
3 nothing was compared or something is not available here, 130 interrupted.)";

/// The help that is about what was called.
std::string help_of(const CLI::App& app) {
  const auto called = app.get_subcommands();
  return called.empty() ? "kdacheck --help" : "kdacheck " + called[0]->get_name() + " --help";
}

int run_program(int argc, char** argv) {
  CLI::App app("Reference and test harness for Kimi Delta Attention kernels", "kdacheck");
  CommandContext context;
  const char* called_as = std::getenv("KDACHECK_PROGRAM");  // set by the build script
  context.program = called_as != nullptr ? called_as : argv[0];
  app.set_version_flag("--version", std::string("kdacheck ") + std::string(kda::harness::kVersion));
  app.require_subcommand(1);
  app.footer(kExamples);
  add_check_command(app, context);
  add_bench_command(app, context);
  add_compare_command(app, context);
  add_fuzz_command(app, context);
  add_gen_command(app, context);
  add_list_command(app, context);
  add_merge_command(app, context);
  add_mutate_command(app, context);
  add_fit_command(app, context);
  add_predict_command(app, context);
  add_report_command(app, context);
  add_shrink_command(app, context);
  add_plugin_host_command(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    print_error(std::string("usage: ") + error.what() + ". Fix: see " + help_of(app));
    return static_cast<int>(Exit::kBadInput);
  } catch (const kda::Error& error) {
    using kda::ErrorCode;
    if (error.code() != ErrorCode::kUsage || error.fix() != kda::info(ErrorCode::kUsage).fix) throw;
    throw kda::Error(error.code(), error.message(), "see " + help_of(app));
  }
  return static_cast<int>(context.exit);
}

/// Output that could not be written is no success.
int checked_output(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  if (status != static_cast<int>(Exit::kSuccess)) return status;
  print_error(
      "report_unwritable: standard output: not all could be written. Fix: choose a writable place");
  return static_cast<int>(Exit::kBadInput);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has seen enough must not cost the reports
  std::signal(SIGXFSZ, SIG_IGN);  // nor a limit on file sizes: writing fails and is reported
  try {
    return checked_output(run_program(argc, argv));
  } catch (const kda::Error& error) {
    print_error(error.what());
    if (error.code() == kda::ErrorCode::kDeviceUnavailable)
      return static_cast<int>(Exit::kUnavailable);
  } catch (const std::bad_alloc&) {
    print_error(kda::Error(kda::ErrorCode::kOutOfMemory, "ran out of memory").what());
  } catch (const std::exception& error) {
    print_error(std::string("unexpected: ") + error.what());
  }
  return static_cast<int>(Exit::kBadInput);
}
