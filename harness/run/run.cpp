#include "harness/run/run.hpp"

#include "harness/base/interrupt.hpp"
#include "harness/base/shell_quote.hpp"
#include "harness/case/case_line.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/fixture/sha256.hpp"
#include "harness/run/capsule.hpp"
#include "harness/run/known_failures.hpp"
#include "harness/run/laws.hpp"
#include "harness/run/peer_ratio.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

namespace kda::harness {
namespace {

/// A file to read, or a case line to make.
struct WorkItem {
  std::int64_t index = 0;  ///< among all, before shards
  std::filesystem::path file{};
  std::optional<CaseLine> line{};
  std::string below{};  ///< name of the file below the path that was asked for

  [[nodiscard]] std::string label() const { return line ? to_string(*line) : file.string(); }
};

/// What makes the item the same one on another machine; contents are not read for that.
std::string identity(const WorkItem& item) {
  if (item.line) return "case " + to_string(*item.line) + "\n";
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(item.file, error);
  return "file " + item.below + " " + (error ? "?" : std::to_string(bytes)) + "\n";
}

/// Everything that is fixed before the first case is read.
struct Plan {
  std::vector<WorkItem> items;
  std::vector<const Implementation*> implementations;  ///< empty = all
  std::deque<Implementation> external;                 ///< those of them not built in
  Judging judging;
};

void require_shard(const RunOptions& options) {
  if (options.shard_count >= 1 && options.shard_index >= 1 &&
      options.shard_index <= options.shard_count) {
    return;
  }
  throw Error(ErrorCode::kUsage,
              "--shard: expected I/N with 1 <= I <= N, got " + std::to_string(options.shard_index) +
                  "/" + std::to_string(options.shard_count),
              "count shards from 1, as in --shard 1/3");
}

/// Calls `add`; what it throws is one more input that could not be read.
template <class Add>
void add_input(RunReport& report, Add add) {
  try {
    add();
  } catch (const Error& error) {
    report.input_errors.emplace_back(error.what());
  }
}

/// Everything that was asked for, before shards.
std::vector<WorkItem> work_items(const RunOptions& options, RunReport& report) {
  std::vector<WorkItem> all;
  for (const auto& path : options.paths) {
    add_input(report, [&] {
      FixtureSearch found = search_fixtures(path);
      for (auto& file : found.files) {
        std::string below =
            (file == path ? path.filename() : file.lexically_relative(path)).string();
        all.push_back({.file = std::move(file), .line = {}, .below = std::move(below)});
      }
      for (const auto& half : found.halves) report.halves.push_back(half.string());
      for (const std::string& problem : found.problems)
        report.input_errors.emplace_back(Error(ErrorCode::kPathNotFound, problem).what());
    });
  }
  for (const auto& file : options.case_files) {
    add_input(report, [&] {
      for (CaseLine& line : read_case_list(file)) all.push_back({.line = std::move(line)});
    });
  }
  for (const std::string& line : options.case_lines)
    add_input(report, [&] { all.push_back({.line = parse_case_line(line)}); });
  for (std::size_t i = 0; i < all.size(); ++i) all[i].index = static_cast<std::int64_t>(i);
  return all;
}

/// What verdicts depend on besides the cases.
std::map<std::string, std::string> deciding_options(const RunOptions& options) {
  std::map<std::string, std::string> set;
  const auto add = [&set](const char* option, std::string value) {
    if (!value.empty()) set[option] = std::move(value);
  };
  add("--policy", options.policy);
  if (options.formats) add("--formats", to_string(*options.formats));
  add("--filter", options.filter);
  if (options.laws) add("--laws", "yes");
  if (!options.capsules.empty()) add("--capsules", "yes");
  if (options.repeats != 1) add("--repeat", std::to_string(options.repeats));
  if (options.external.timeout != ExternalOptions{}.timeout)
    add("--timeout", fmt::format("{}", options.external.timeout));
  add("kernels", options.kernel_arguments);
  return set;
}

RunOrigin origin_of(const RunOptions& options, const std::vector<WorkItem>& all) {
  std::string list;
  for (const WorkItem& item : all) list += identity(item);
  return {.shard_index = options.shard_index,
          .shard_count = options.shard_count,
          .items = static_cast<std::int64_t>(all.size()),
          .inputs = sha256_hex(list),
          .options = deciding_options(options)};
}

Plan plan_run(const RunOptions& options, RunReport& report) {
  require_shard(options);
  Plan plan;
  for (const std::string& implementation : options.implementations) {
    if (is_external(implementation)) {
      plan.external.push_back(make_external(implementation, options.external));
      plan.implementations.push_back(&plan.external.back());
    } else {
      plan.implementations.push_back(&find_implementation(implementation));
    }
  }
  if (!options.policy.empty()) plan.judging.policy = &find_policy(options.policy);
  plan.judging.kernels = options.kernels;
  plan.judging.formats = options.formats;
  plan.judging.repeats = options.repeats;
  plan.judging.keep_evidence = !options.capsules.empty();
  if (!options.known_failures.empty())
    report.known_failures = read_known_failures(options.known_failures, utc_date());

  report.asked = options.implementations;
  std::vector<WorkItem> all = work_items(options, report);
  report.origin = origin_of(options, all);
  for (WorkItem& item : all) {
    if (report.origin.holds(item.index)) plan.items.push_back(std::move(item));
  }
  return plan;
}

std::string repeat_command(const RunOptions& options, const CaseResult& result) {
  std::string command = options.program + " check";
  command += result.line.empty() ? " " + shell_quoted(result.file)
                                 : " --case " + shell_quoted(result.line);
  if (!result.implementation.empty()) command += " --impl " + shell_quoted(result.implementation);
  if (!options.policy.empty()) command += " --policy " + shell_quoted(options.policy);
  if (options.laws) command += " --laws";
  if (options.formats) command += " --formats " + shell_quoted(to_string(*options.formats));
  if (!options.kernel_arguments.empty()) command += " " + options.kernel_arguments;
  if (is_external(result.implementation) && options.external.timeout != ExternalOptions{}.timeout)
    command += fmt::format(" --timeout {}", options.external.timeout);
  if (options.repeats != 1) command += " --repeat " + std::to_string(options.repeats);
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

/// By its name alone, so that nothing else of it need be read. What has none to be read is not left
/// out: reading it all says why.
bool left_out(const WorkItem& item, const std::string& filter) {
  if (filter.empty()) return false;
  const std::optional<std::string> name =
      item.line ? to_string(*item.line) : read_fixture_name(item.file);
  return name && fnmatch(filter.c_str(), name->c_str(), 0) != 0;
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

/// All who are asked, or all who serve the case.
std::vector<const Implementation*> serving(const Plan& plan, const Case& test_case) {
  if (!plan.implementations.empty()) return plan.implementations;
  std::vector<const Implementation*> all;
  for (const Implementation& implementation : all_implementations()) {
    if (implementation.on_request || unsupported(implementation, test_case)) continue;
    all.push_back(&implementation);
  }
  if (all.empty()) all.push_back(&all_implementations().front());  // says so: no case is lost
  return all;
}

/// After this nothing on the device can be run by this process: every call would fail.
bool lost_the_device(const CaseResult& result) {
  return result.code == name(ErrorCode::kDeviceLost) && is_failure(result.verdict);
}

/// Judges a case by all who are asked, or by all who serve it, and adds to `results`; false when it
/// stopped before the last because the device was lost.
bool judge_by_all(const Case& test_case, const Plan& plan, const RunOptions& options,
                  std::vector<CaseResult>& results) {
  CaseAnswers answers(test_case);
  const auto judge_by = [&](const Implementation& implementation) {
    Judging judging = plan.judging;
    // A stranger's f64 may be its way of storing bf16: the dtype does not choose the policy.
    if (judging.policy == nullptr && is_external(implementation.name))
      judging.policy = &find_policy("derived");
    results.push_back(judge(answers, implementation, judging));
    if (options.laws && results.back().verdict == Verdict::kPassed) {
      judge_by_laws(test_case, implementation, options.kernels, results.back());
    }
  };
  for (const Implementation* implementation : serving(plan, test_case)) {
    judge_by(*implementation);
    if (lost_the_device(results.back())) return false;
  }
  return true;
}

/// A capsule that cannot be written is worth less than the verdict.
void save_capsule(const RunOptions& options, CaseResult& result) {
  try {
    result.capsule = write_capsule(options.capsules, result);
  } catch (const Error& error) {
    result.diagnosis += std::string("no capsule: ") + error.what() + "\n";
  }
  result.evidence.reset();
}

/// What came of one work item.
struct ItemResults {
  std::vector<CaseResult> results;  ///< none when the filter leaves the case out
  bool whole = false;               ///< not when the run was ended meanwhile
};

ItemResults work(const WorkItem& item, const Plan& plan, const RunOptions& options) {
  std::vector<CaseResult> results;
  bool whole = true;
  try {
    if (left_out(item, options.filter)) return {{}, true};
    const Case test_case = read_or_make(item);
    whole = judge_by_all(test_case, plan, options, results);
  } catch (const Interrupted&) {
    whole = false;  // what was judged before stands; the implementation that was stopped did
                    // nothing wrong.
  } catch (const Error& error) {
    results.assign(1, unreadable(item, error));
  } catch (const std::bad_alloc&) {
    results.assign(1, unreadable(item, Error(ErrorCode::kOutOfMemory,
                                             item.label() + ": does not fit into memory")));
  } catch (const std::exception& error) {  // nothing that one case does may end the run
    results.assign(
        1, unreadable(item, Error(ErrorCode::kFileUnreadable, item.label() + ": " + error.what())));
  }
  for (CaseResult& result : results) {
    result.item = item.index;
    result.command = repeat_command(options, result);
    if (result.evidence) save_capsule(options, result);
  }
  compare_with_peers(results);
  return {std::move(results), whole};
}

/// Takes the items one after the other, in several threads, until all are done, SIGINT comes or the
/// device is lost; in the order of the items.
class Course {
 public:
  Course(const Plan& plan, const RunOptions& options, const Progress& progress)
      : plan_(plan), options_(options), progress_(progress), items_(plan.items.size()) {}

  void run() {
    std::vector<std::jthread> threads;
    const auto most = std::min(options_.jobs, static_cast<std::int64_t>(items_.size()));
    try {
      for (std::int64_t i = 1; i < most; ++i) threads.emplace_back([this] { work_off(); });
    } catch (const std::system_error&) {
      // Fewer threads than asked for take longer, that is all.
    }
    work_off();
  }

  /// Once run() is over.
  void report_to(RunReport& report) {
    for (ItemResults& item : items_) {
      if (!item.whole) ++report.not_run;
      for (CaseResult& result : item.results) report.results.push_back(std::move(result));
    }
    report.stopped = stopped_;
  }

 private:
  void work_off() {
    for (std::size_t i = next_++; i < items_.size() && goes_on(); i = next_++) {
      items_[i] = work(plan_.items[i], plan_, options_);
      const std::lock_guard lock(mutex_);
      progress_(++done_, static_cast<std::int64_t>(items_.size()), plan_.items[i].label());
      const auto lost = std::ranges::find_if(items_[i].results, lost_the_device);
      if (lost == items_[i].results.end() || !stopped_.empty()) continue;
      stopped_ = fmt::format("{} at {} of {}", lost->code, lost->case_name, lost->implementation);
    }
  }

  bool goes_on() {
    const std::lock_guard lock(mutex_);
    return stopped_.empty() && !interrupted();
  }

  const Plan& plan_;
  const RunOptions& options_;
  const Progress& progress_;
  std::vector<ItemResults> items_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::int64_t done_ = 0;
  std::string stopped_;
};

}  // namespace

RunReport run(const RunOptions& options, const Progress& progress) {
  RunReport report;
  Plan plan = plan_run(options, report);
  const auto begin = std::chrono::steady_clock::now();
  const InterruptGuard guard;

  Course course(plan, options, progress);
  course.run();
  course.report_to(report);
  apply_known_failures(report.known_failures, report.results);
  report.interrupted = interrupted();
  report.conclude();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace kda::harness
