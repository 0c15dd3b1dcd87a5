#include "harness/bench/counter_run.hpp"

#include "harness/bench/counter_compare.hpp"
#include "harness/bench/occupancy.hpp"
#include "harness/bench/ptxas_log.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using cuda::simt::Counters;
using cuda::simt::GlobalTraffic;
using cuda::simt::SharedTraffic;
using nlohmann::json;

/// An executor that keeps the counters of every launch apart.
class CountingDevice final : public cuda::Device {
 public:
  std::byte* allocate(const char* name, std::size_t bytes) override {
    return executor_->allocate(name, bytes);
  }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    executor_->copy_to_device(device, host, bytes);
  }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    executor_->copy_to_host(host, device, bytes);
  }
  void launch(const cuda::KernelForms& kernel, const cuda::LaunchShape& shape,
              void* params) override {
    counters_ = {};
    executor_->launch(kernel, shape, params);
    launches.push_back({kernel.name, shape, counters_});
  }

  std::vector<CountedLaunch> launches;

 private:
  Counters counters_;
  std::unique_ptr<cuda::Device> executor_ = cuda::open_executor({}, &counters_);
};

constexpr std::array<std::pair<const char*, std::uint64_t Counters::*>, 14> kCounts{
    {{"blocks", &Counters::blocks},
     {"mma", &Counters::mma},
     {"ldmatrix", &Counters::ldmatrix},
     {"movmatrix", &Counters::movmatrix},
     {"shuffles", &Counters::shuffles},
     {"votes", &Counters::votes},
     {"warp_barriers", &Counters::warp_barriers},
     {"block_barriers", &Counters::block_barriers},
     {"named_barriers", &Counters::named_barriers},
     {"path_barriers", &Counters::path_barriers},
     {"special", &Counters::special},
     {"atomics", &Counters::atomics},
     {"copies", &Counters::copies},
     {"copy_groups", &Counters::copy_groups}}};
constexpr std::array<std::pair<const char*, SharedTraffic Counters::*>, 3> kShared{
    {{"shared_load", &Counters::shared_load},
     {"shared_store", &Counters::shared_store},
     {"copy_store", &Counters::copy_store}}};
constexpr std::array<std::pair<const char*, GlobalTraffic Counters::*>, 4> kGlobal{
    {{"global_load", &Counters::global_load},
     {"global_store", &Counters::global_store},
     {"global_atomic", &Counters::global_atomic},
     {"copy_load", &Counters::copy_load}}};

json counts_json(const Counters& counters) {
  json out;
  for (const auto& [name, member] : kCounts) out[name] = counters.*member;
  for (const auto& [name, member] : kShared) {
    const SharedTraffic& traffic = counters.*member;
    const std::string prefix = std::string(name) + ".";
    out[prefix + "requests"] = traffic.requests;
    out[prefix + "bytes"] = traffic.bytes;
    out[prefix + "wavefronts"] = traffic.wavefronts;
    out[prefix + "conflicts"] = traffic.conflicts;
  }
  for (const auto& [name, member] : kGlobal) {
    const GlobalTraffic& traffic = counters.*member;
    const std::string prefix = std::string(name) + ".";
    out[prefix + "requests"] = traffic.requests;
    out[prefix + "sectors"] = traffic.sectors;
    out[prefix + "bytes"] = traffic.bytes;
  }
  return out;
}

/// Bytes used of the sectors touched, to four digits.
json shares_json(const Counters& counters) {
  constexpr double kSectorBytes = 32;
  json out = json::object();
  for (const auto& [name, member] : kGlobal) {
    const GlobalTraffic& traffic = counters.*member;
    if (traffic.sectors == 0) continue;
    const double share =
        static_cast<double>(traffic.bytes) / (kSectorBytes * static_cast<double>(traffic.sectors));
    out[name] = std::round(share * 1e4) / 1e4;
  }
  return out;
}

json extent_json(const cuda::simt::Dim3& extent) { return {extent.x, extent.y, extent.z}; }

json case_json(const CounterCase& counter_case, const std::vector<CountedLaunch>& launches) {
  Counters total;
  json list = json::array();
  for (const CountedLaunch& launch : launches) {
    total += launch.counters;
    list.push_back({{"kernel", launch.kernel},
                    {"grid", extent_json(launch.shape.grid)},
                    {"block", extent_json(launch.shape.block)},
                    {"dynamic_shared_bytes", launch.shape.shared_bytes},
                    {"counters", counts_json(launch.counters)},
                    {"shares", shares_json(launch.counters)}});
  }
  json sums = counts_json(total);
  sums["launches"] = launches.size();
  return {{"implementation", counter_case.implementation},
          {"case", counter_case.name},
          {"line", counter_case.line},
          {"total", sums},
          {"launches", list}};
}

/// How kernels were launched: a name in the executor is the function's without "_kernel".
struct Launched {
  int threads = 0;
  std::int64_t dynamic_shared = 0;
};
using LaunchedByName = std::map<std::string, Launched>;

void remember(LaunchedByName& by_name, const std::vector<CountedLaunch>& launches) {
  for (const CountedLaunch& launch : launches) {
    Launched& seen = by_name[launch.kernel];
    const auto& block = launch.shape.block;
    seen.threads = std::max(seen.threads, static_cast<int>(block.x * block.y * block.z));
    seen.dynamic_shared =
        std::max(seen.dynamic_shared, static_cast<std::int64_t>(launch.shape.shared_bytes));
  }
}

Launched launched_as(const std::string& kernel, const LaunchedByName& by_name) {
  std::string name = kernel.substr(0, kernel.find('<'));
  constexpr std::string_view kEnding = "_kernel";
  if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  const auto found = by_name.find(name);
  return found == by_name.end() ? Launched{} : found->second;
}

json kernel_json(const CompiledKernel& kernel, const LaunchedByName& by_name) {
  const Launched launched = launched_as(kernel.kernel, by_name);
  json out{{"kernel", kernel.kernel},
           {"file", kernel.file},
           {"arch", kernel.arch},
           {"registers", kernel.registers},
           {"spill_stores", kernel.spill_stores},
           {"spill_loads", kernel.spill_loads},
           {"stack", kernel.stack},
           {"static_shared", kernel.static_shared}};
  if (launched.threads == 0) return out;  // no case launches it
  out["threads"] = launched.threads;
  out["dynamic_shared"] = launched.dynamic_shared;
  const auto resident =
      occupancy(kernel.arch, {.threads = launched.threads,
                              .registers = kernel.registers,
                              .shared_bytes = kernel.static_shared + launched.dynamic_shared});
  if (resident) {
    out["blocks_per_sm"] = resident->blocks;
    out["limited_by"] = resident->limited_by;
  }
  return out;
}

}  // namespace

std::vector<CountedLaunch> count_launches(const CounterCase& counter_case) {
  CountingDevice device;
  counter_case.run(device);
  return std::move(device.launches);
}

json counter_report(const std::vector<CounterCase>& cases,
                    const std::filesystem::path& ptxas_folder) {
  json report{{"format", kCounterFormat},
              {"version", kCounterVersion},
              {"cases", json::array()},
              {"kernels", json::array()}};
  LaunchedByName by_name;
  for (const CounterCase& counter_case : cases) {
    const std::vector<CountedLaunch> launches = count_launches(counter_case);
    remember(by_name, launches);
    report["cases"].push_back(case_json(counter_case, launches));
  }
  for (const CompiledKernel& kernel : read_ptxas_logs(ptxas_folder))
    report["kernels"].push_back(kernel_json(kernel, by_name));
  if (report["kernels"].empty())
    report["kernels_missing"] = "this program was built without nvcc: no log of ptxas";
  return report;
}

}  // namespace kda::harness
