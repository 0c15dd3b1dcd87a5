#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kda::harness {

/// What a block needs of a multiprocessor.
struct BlockNeeds {
  int threads = 0;
  int registers = 0;              ///< a thread
  std::int64_t shared_bytes = 0;  ///< static and dynamic together
};

struct Occupancy {
  int blocks = 0;               ///< resident on one multiprocessor
  std::string_view limited_by;  ///< "registers", "shared memory", "warps" or "blocks"
};

/// For "sm_80", "sm_90a", "sm_100a"; nothing for others. The rules are those of the CUDA
/// Programming Guide's table of technical specifications and of cuda_occupancy.h, against which a
/// test holds it where the Toolkit is installed.
[[nodiscard]] std::optional<Occupancy> occupancy(std::string_view arch, const BlockNeeds& needs);

}  // namespace kda::harness
