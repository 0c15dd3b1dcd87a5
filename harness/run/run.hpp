#pragma once

#include "harness/implementation/external.hpp"
#include "harness/run/run_report.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kda::harness {

/// What `kdacheck check` was asked to do.
struct RunOptions {
  std::vector<std::filesystem::path> paths;       ///< files or folders
  std::vector<std::filesystem::path> case_files;  ///< lists of case lines
  std::vector<std::string> case_lines;            ///< judged after the files
  std::vector<std::string> implementations;       ///< empty = every one that serves the case
  std::string policy;                             ///< empty = chosen by the result's dtype
  bool laws = false;                     ///< a case passes only if the laws (laws.hpp) hold as well
  std::optional<StatedFormats> formats;  ///< in place of what implementations state
  std::string filter;                    ///< glob on the case name; empty = all
  std::filesystem::path capsules;        ///< folder for failed cases; empty = none
  std::int64_t shard_index = 1;          ///< counts from 1
  std::int64_t shard_count = 1;
  KernelSettings kernels;                ///< how CUDA kernels run
  std::string kernel_arguments;          ///< the same as arguments, for repeat commands
  ExternalOptions external;              ///< how exec: and plugin: implementations run
  std::int64_t repeats = 1;              ///< calls per case, which must give the same bits
  std::filesystem::path known_failures;  ///< list of them, or empty
  std::int64_t jobs = 1;                 ///< cases judged at once
  std::string program = "kdacheck";      ///< how repeat commands call this program
};

/// Called after every case, in no particular order, never concurrently.
using Progress =
    std::function<void(std::int64_t done, std::int64_t total, const std::string& name)>;

/// Reads and judges case by case; a bad fixture is one result and the run goes on. SIGINT ends the
/// run after the cases in progress and kills child processes. Throws kUsage, kPathNotFound,
/// kImplementationUnknown, kPolicyUnknown, kKnownFailuresInvalid before any work.
[[nodiscard]] RunReport run(const RunOptions& options, const Progress& progress);

}  // namespace kda::harness
