#pragma once

#include "cuda/runtime.hpp"
#include "harness/implementation/kernel_settings.hpp"

#include <map>
#include <string>

#include <CLI/CLI.hpp>

namespace kda::harness {

inline void add_device_option(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "Where CUDA kernels run: cpu (the executor), gpu, auto")
      ->check(CLI::IsMember({"cpu", "gpu", "auto"}));
}

/// One of the names that the option takes. Throws where a GPU is asked for and there is none, so
/// that it says why not before any work.
[[nodiscard]] inline DeviceChoice device_choice(const std::string& device) {
  static const std::map<std::string, DeviceChoice> kDevices{
      {"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"gpu", DeviceChoice::kGpu}};
  const DeviceChoice choice = kDevices.at(device);
  if (choice == DeviceChoice::kGpu) (void)cuda::open_gpu();
  return choice;
}

}  // namespace kda::harness
