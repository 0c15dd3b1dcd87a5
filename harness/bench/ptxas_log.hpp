#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness {

/// What ptxas -v says of one kernel on one architecture.
struct CompiledKernel {
  std::string kernel;  ///< without namespaces and parameters: "recurrent_kernel<float, true, 64>"
  std::string file;    ///< "recurrent_kernels.cu"
  std::string arch;    ///< "sm_90a"
  int registers = 0;   ///< a thread
  std::int64_t spill_stores = 0;  ///< bytes
  std::int64_t spill_loads = 0;   ///< bytes
  std::int64_t stack = 0;         ///< bytes a thread
  std::int64_t static_shared = 0;
};

/// The kernels of one log, in its order.
[[nodiscard]] std::vector<CompiledKernel> parse_ptxas_log(std::string_view log,
                                                          const std::string& file);

/// Of every *.ptxas.txt in a folder, ordered by kernel and architecture; empty without any.
[[nodiscard]] std::vector<CompiledKernel> read_ptxas_logs(const std::filesystem::path& folder);

}  // namespace kda::harness
