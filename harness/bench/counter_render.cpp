#include "harness/bench/counter_run.hpp"

#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;

std::string cases_text(const json& report) {
  std::string text =
      fmt::format("{:<15} {:<22} {:<16} {:>6} {:>8} {:>8} {:>8} {:>9} {:>8} {:>6} {:>6}\n",
                  "implementation", "case", "kernel", "blocks", "mma", "special", "conflict",
                  "sectors", "used", "path", "groups");
  for (const json& entry : report["cases"]) {
    for (const json& launch : entry["launches"]) {
      const json& c = launch["counters"];
      std::int64_t conflicts = 0;
      std::int64_t sectors = 0;
      std::int64_t bytes = 0;
      for (const char* name : {"shared_load", "shared_store", "copy_store"})
        conflicts += c[std::string(name) + ".conflicts"].get<std::int64_t>();
      for (const char* name : {"global_load", "global_store", "global_atomic", "copy_load"}) {
        sectors += c[std::string(name) + ".sectors"].get<std::int64_t>();
        bytes += c[std::string(name) + ".bytes"].get<std::int64_t>();
      }
      const double used =
          sectors == 0 ? 1 : static_cast<double>(bytes) / (32 * static_cast<double>(sectors));
      text += fmt::format(
          "{:<15} {:<22} {:<16} {:>6} {:>8} {:>8} {:>8} {:>9} {:>7.1f}% {:>6} {:>6}\n",
          entry["implementation"].get<std::string>(), entry["case"].get<std::string>(),
          launch["kernel"].get<std::string>(), c["blocks"].get<std::int64_t>(),
          c["mma"].get<std::int64_t>(), c["special"].get<std::int64_t>(), conflicts, sectors,
          100 * used, c["path_barriers"].get<std::int64_t>(), c["copy_groups"].get<std::int64_t>());
    }
  }
  return text;
}

std::string kernels_text(const json& report) {
  if (report.contains("kernels_missing"))
    return report["kernels_missing"].get<std::string>() + "\n";
  std::string text = fmt::format("\n{:<40} {:<8} {:>9} {:>6} {:>6} {:>7} {:>7} {:>9}  {}\n",
                                 "compiled kernel", "arch", "registers", "spills", "stack",
                                 "shared", "threads", "blocks/SM", "limited by");
  for (const json& k : report["kernels"]) {
    const auto number = [&k](const char* key) { return k.value(key, std::int64_t{0}); };
    text += fmt::format("{:<40} {:<8} {:>9} {:>6} {:>6} {:>7} {:>7} {:>9}  {}\n",
                        k["kernel"].get<std::string>(), k["arch"].get<std::string>(),
                        number("registers"), number("spill_stores") + number("spill_loads"),
                        number("stack"), number("static_shared") + number("dynamic_shared"),
                        number("threads"), number("blocks_per_sm"), k.value("limited_by", "-"));
  }
  return text;
}

}  // namespace

std::string counter_text(const json& report) { return cases_text(report) + kernels_text(report); }

}  // namespace kda::harness
