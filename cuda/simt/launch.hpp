#pragma once

#include "cuda/simt/counters.hpp"
#include "cuda/simt/memory.hpp"
#include "cuda/simt/options.hpp"
#include "cuda/simt/report.hpp"

#include <optional>
#include <tuple>

namespace kda::cuda::simt {

/// What came of a launch: counters of the blocks that ran, and the fault that ended it, if any.
struct LaunchResult {
  Counters counters;
  std::optional<Report> fault;
};

/// Runs body(argument) for every thread of the grid. `config`'s limits are a device's.
[[nodiscard]] LaunchResult try_run(const LaunchConfig& config, const Options& options,
                                   const Memory& memory, void (*body)(void*), void* argument);

/// Runs a kernel over a grid on the CPU. Pointers in the arguments must point into `memory`.
template <class... Parameters, class... Arguments>
[[nodiscard]] LaunchResult try_launch(const LaunchConfig& config, const Options& options,
                                      const Memory& memory, void (*kernel)(Parameters...),
                                      const Arguments&... arguments) {
  struct Bound {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  Bound bound{kernel, std::tuple<Parameters...>(arguments...)};
  const auto body = [](void* p) {
    const auto& b = *static_cast<const Bound*>(p);
    std::apply(b.kernel, b.arguments);
  };
  return try_run(config, options, memory, body, &bound);
}

/// Throws kExecutorFault with the report's text when there is a fault.
Counters value_or_throw(const LaunchResult& result);

/// As try_launch, but a fault is an Error (kExecutorFault).
template <class... Parameters, class... Arguments>
Counters launch(const LaunchConfig& config, const Options& options, const Memory& memory,
                void (*kernel)(Parameters...), const Arguments&... arguments) {
  return value_or_throw(try_launch(config, options, memory, kernel, arguments...));
}

}  // namespace kda::cuda::simt
