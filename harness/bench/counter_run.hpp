#pragma once

#include "cuda/runtime.hpp"
#include "cuda/simt/counters.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

/// What the executor counted in one launch.
struct CountedLaunch {
  std::string kernel;
  cuda::LaunchShape shape;
  cuda::simt::Counters counters;
};

/// A small call whose launches are counted.
struct CounterCase {
  std::string implementation;
  std::string name;
  std::string line;  ///< what is called: a case line, or words
  std::function<void(cuda::Device&)> run;
};

/// The fixed list: every kernel, in the variants that differ in what they do.
[[nodiscard]] std::vector<CounterCase> counter_cases();

/// On the CPU executor. Throws what the call throws, kExecutorFault included.
[[nodiscard]] std::vector<CountedLaunch> count_launches(const CounterCase& counter_case);

/// Format "kdacheck-counters", version 1: the launches of all cases, and the kernels in the
/// compiler's logs in `ptxas_folder`. Depends on the build alone.
[[nodiscard]] nlohmann::json counter_report(const std::vector<CounterCase>& cases,
                                            const std::filesystem::path& ptxas_folder);

/// The report as a table.
[[nodiscard]] std::string counter_text(const nlohmann::json& report);

}  // namespace kda::harness
