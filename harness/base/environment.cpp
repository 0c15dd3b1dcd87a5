#include "harness/base/environment.hpp"

#include "harness/version.hpp"

#include <string>
#include <thread>

#include <sys/utsname.h>

namespace kda::harness {

nlohmann::json environment() {
  utsname system{};
  uname(&system);
  return {{"kdacheck", kVersion},
          {"system", std::string(system.sysname) + " " + system.release},
          {"machine", system.machine},
          {"compiler", __VERSION__},
          {"threads", std::thread::hardware_concurrency()}};
}

}  // namespace kda::harness
