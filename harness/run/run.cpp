#include "harness/run/run.hpp"

#include "harness/case/case_line.hpp"
#include "harness/fixture/fixture.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fnmatch.h>

namespace kda::harness {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

extern "C" void on_interrupt(int) { g_interrupted = 1; }

/// SIGINT asks the run to end after the cases in progress; a second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard() {
    g_interrupted = 0;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

/// A file to read, or a case line to make.
struct WorkItem {
  std::filesystem::path file;
  std::optional<CaseLine> line;

  [[nodiscard]] std::string label() const { return line ? to_string(*line) : file.string(); }
};

/// As a shell reads it back.
std::string quoted(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./:=,+-@%") == std::string::npos;
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Everything that is fixed before the first case is read.
struct Plan {
  std::vector<WorkItem> items;
  std::vector<const Implementation*> implementations;  ///< empty = all
  const Policy* policy = nullptr;
};

Plan plan_run(const RunOptions& options, RunReport& report) {
  if (options.shard_count < 1 || options.shard_index < 1 ||
      options.shard_index > options.shard_count) {
    throw Error(ErrorCode::kUsage,
                "--shard: expected I/N with 1 <= I <= N, got " +
                    std::to_string(options.shard_index) + "/" + std::to_string(options.shard_count),
                "count shards from 1, as in --shard 1/3");
  }
  Plan plan;
  for (const std::string& implementation : options.implementations) {
    plan.implementations.push_back(&find_implementation(implementation));
  }
  if (!options.policy.empty()) plan.policy = &find_policy(options.policy);

  std::vector<WorkItem> all;
  for (const auto& path : options.paths) {
    try {
      for (auto& file : find_fixtures(path)) all.push_back({std::move(file), std::nullopt});
    } catch (const Error& error) {
      report.input_errors.emplace_back(error.what());
    }
  }
  for (const auto& file : options.case_files) {
    try {
      for (CaseLine& line : read_case_list(file)) all.push_back({{}, std::move(line)});
    } catch (const Error& error) {
      report.input_errors.emplace_back(error.what());
    }
  }
  for (const std::string& line : options.case_lines) {
    try {
      all.push_back({{}, parse_case_line(line)});
    } catch (const Error& error) {
      report.input_errors.emplace_back(error.what());
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (static_cast<std::int64_t>(i) % options.shard_count == options.shard_index - 1) {
      plan.items.push_back(std::move(all[i]));
    }
  }
  return plan;
}

std::string repeat_command(const RunOptions& options, const CaseResult& result) {
  std::string command = options.program + " check";
  command += result.line.empty() ? " " + quoted(result.file) : " --case " + quoted(result.line);
  if (!result.implementation.empty()) command += " --impl " + quoted(result.implementation);
  if (!options.policy.empty()) command += " --policy " + quoted(options.policy);
  if (!options.kernel_arguments.empty()) command += " " + options.kernel_arguments;
  return command;
}

/// The HDF5 library is not built for threads everywhere, so files are read one at a time.
Case read_or_make(const WorkItem& item) {
  if (item.line) return make_case(*item.line);
  static std::mutex one_reader;
  const std::lock_guard lock(one_reader);
  Case fixture = read_fixture(item.file);
  fixture.file = item.file;
  return fixture;
}

CaseResult unreadable(const WorkItem& item, const Error& error) {
  CaseResult result;
  result.case_name = item.file.stem().string();
  result.file = item.file.string();
  result.line = item.line ? to_string(*item.line) : "";
  result.verdict = Verdict::kFixtureError;
  result.code = name(error.code());
  result.detail = error.message() + ". Fix: " + error.fix();
  return result;
}

/// The results of one work item; nothing when the filter leaves it out.
std::vector<CaseResult> work(const WorkItem& item, const Plan& plan, const RunOptions& options) {
  std::vector<CaseResult> results;
  try {
    const Case test_case = read_or_make(item);
    if (!options.filter.empty() && fnmatch(options.filter.c_str(), test_case.name.c_str(), 0) != 0)
      return {};
    if (!plan.implementations.empty()) {
      for (const Implementation* implementation : plan.implementations) {
        results.push_back(judge(test_case, *implementation, plan.policy, options.kernels));
      }
    } else {
      for (const Implementation& implementation : all_implementations()) {
        if (!unsupported(implementation, test_case)) {
          results.push_back(judge(test_case, implementation, plan.policy, options.kernels));
        }
      }
      if (results.empty()) {  // say so rather than lose the case
        results.push_back(
            judge(test_case, all_implementations().front(), plan.policy, options.kernels));
      }
    }
  } catch (const Error& error) {
    results.assign(1, unreadable(item, error));
  } catch (const std::bad_alloc&) {
    results.assign(1, unreadable(item, Error(ErrorCode::kOutOfMemory,
                                             item.label() + ": does not fit into memory")));
  } catch (const std::exception& error) {  // nothing that one case does may end the run
    results.assign(
        1, unreadable(item, Error(ErrorCode::kFileUnreadable, item.label() + ": " + error.what())));
  }
  for (CaseResult& result : results) result.command = repeat_command(options, result);
  return results;
}

}  // namespace

std::int64_t RunReport::compared() const {
  const auto all = static_cast<std::int64_t>(results.size());
  return all - count(Verdict::kUnsupported) - count(Verdict::kFixtureError);
}

Exit RunReport::exit_status() const {
  if (interrupted) return Exit::kInterrupted;
  if (!input_errors.empty() || count(Verdict::kFixtureError) > 0) return Exit::kBadInput;
  if (count(Verdict::kFailed) + count(Verdict::kRefused) + count(Verdict::kMistrusted) > 0)
    return Exit::kFailed;
  if (compared() == 0) return Exit::kUnavailable;
  return Exit::kSuccess;
}

RunReport run(const RunOptions& options, const Progress& progress) {
  RunReport report;
  const Plan plan = plan_run(options, report);
  const auto begin = std::chrono::steady_clock::now();
  const InterruptGuard guard;

  std::vector<std::vector<CaseResult>> results(plan.items.size());
  std::atomic<std::size_t> next = 0;
  std::mutex reporting;
  std::int64_t done = 0;
  const auto worker = [&] {
    for (std::size_t i = next++; i < plan.items.size() && g_interrupted == 0; i = next++) {
      results[i] = work(plan.items[i], plan, options);
      const std::lock_guard lock(reporting);
      progress(++done, static_cast<std::int64_t>(plan.items.size()), plan.items[i].label());
    }
  };
  std::vector<std::jthread> threads;
  const auto most = std::min(options.jobs, static_cast<std::int64_t>(plan.items.size()));
  try {
    for (std::int64_t i = 1; i < most; ++i) threads.emplace_back(worker);
  } catch (const std::system_error&) {
    // Fewer threads than asked for take longer, that is all.
  }
  worker();
  threads.clear();  // joins

  for (auto& of_item : results) {
    if (!of_item.empty()) ++report.cases;
    for (CaseResult& result : of_item) {
      ++report.counts[static_cast<std::size_t>(result.verdict)];
      report.results.push_back(std::move(result));
    }
  }
  report.interrupted = g_interrupted != 0;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace kda::harness
