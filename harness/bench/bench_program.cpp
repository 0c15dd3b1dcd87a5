#include "harness/bench/bench_program.hpp"

#include "harness/bench/bench_file.hpp"
#include "reference/types/error.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kda::harness {
namespace {

std::filesystem::path program_folder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::current_path() : program.parent_path();
}

/// Runs a command with its standard output thrown away and its standard error in a file; the exit
/// status, or -1 for a signal.
int run_quietly(std::vector<std::string> words, const std::filesystem::path& errors) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_TRUNC, 0);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw Error(ErrorCode::kPathNotFound, words.front() + ": " + std::strerror(failed));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A file that is gone with this object.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::string name = (std::filesystem::temp_directory_path() / "kdacheck_bench_XXXXXX").string();
    const int file = mkstemp(name.data());
    if (file < 0) throw Error(ErrorCode::kReportUnwritable, name + ": " + std::strerror(errno));
    close(file);
    path_ = name;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string last_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string last = "it said nothing";
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace

std::filesystem::path find_bench_program() {
  const std::filesystem::path folder = program_folder();
  const std::array places{folder / "kdacheck_bench", folder / ".." / "bench" / "kdacheck_bench"};
  for (const auto& place : places)
    if (std::filesystem::exists(place)) return place;
  throw Error(ErrorCode::kPathNotFound, "kdacheck_bench: not beside this program",
              "build the target kdacheck_bench, or call ./kdacheck bench, which does");
}

std::filesystem::path ptxas_folder() { return program_folder() / ".." / "cuda"; }

std::string glob_to_regex(const std::string& glob) {
  std::string regex = "^";
  for (const char c : glob) {
    if (c == '*') {
      regex += ".*";
    } else if (c == '?') {
      regex += '.';
    } else {
      if (std::strchr("\\^$.|+()[]{}", c) != nullptr) regex += '\\';
      regex += c;
    }
  }
  return regex +
         "(/"
         "(real_time|manual_time|process_time|min_time:[0-9.]*|repeats:[0-9]*|iterations:[0-9]*))*"
         "$";
}

nlohmann::json run_benchmarks(const BenchRun& run) {
  const TemporaryFile out;
  const TemporaryFile errors;
  std::vector<std::string> words{run.program.string(), "--benchmark_out_format=json",
                                 "--benchmark_out=" + out.path().string(),
                                 fmt::format("--benchmark_repetitions={}", run.repetitions)};
  if (run.repetitions > 1) words.emplace_back("--benchmark_enable_random_interleaving=true");
  if (!run.filter.empty()) words.push_back("--benchmark_filter=" + glob_to_regex(run.filter));
  if (run.quick) {
    words.emplace_back("--benchmark_min_time=0.02");
    if (run.ours) words.emplace_back("--kda_quick");
  } else {
    words.emplace_back("--benchmark_min_time=0.2");
  }
  const int status = run_quietly(words, errors.path());
  std::error_code error;
  if (std::filesystem::file_size(out.path(), error) == 0 || error) {
    throw Error(ErrorCode::kBenchFileInvalid,
                fmt::format("{}: wrote no results (exit status {}): {}", run.program.string(),
                            status, last_line(errors.path())),
                "choose another --filter, or run the program itself");
  }
  return read_json(out.path());
}

void append_repetitions(nlohmann::json& all, const nlohmann::json& more, int round) {
  if (all.is_null()) {
    all = more;
    all["benchmarks"] = nlohmann::json::array();
  }
  if (!more.contains("benchmarks") || !more["benchmarks"].is_array()) return;
  for (nlohmann::json entry : more["benchmarks"]) {
    if (!entry.is_object() || entry.value("run_type", "") == "aggregate") continue;
    entry["round"] = round;
    all["benchmarks"].push_back(std::move(entry));
  }
}

}  // namespace kda::harness
