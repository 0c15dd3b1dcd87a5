#include "cuda/runtime.hpp"
#include "cuda/simt/launch.hpp"

#include <cstring>

namespace kda::cuda {
namespace {

class ExecutorDevice final : public Device {
 public:
  ExecutorDevice(const simt::Options& options, simt::Counters* counters)
      : options_(options), counters_(counters) {}

  std::byte* allocate(const char* name, std::size_t bytes) override {
    return memory_.allocate(name, bytes);
  }

  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(device, host, bytes);
  }

  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(host, device, bytes);
  }

  void launch(const KernelForms& kernel, const LaunchShape& shape, void* params) override {
    const simt::LaunchConfig config{kernel.name, shape.grid, shape.block, shape.shared_bytes};
    const simt::Counters counters =
        simt::value_or_throw(simt::try_run(config, options_, memory_, kernel.cpu, params));
    if (counters_ != nullptr) *counters_ += counters;
  }

 private:
  simt::Options options_;
  simt::Counters* counters_;
  simt::Memory memory_;
};

}  // namespace

std::unique_ptr<Device> open_executor(const simt::Options& options, simt::Counters* counters) {
  return std::make_unique<ExecutorDevice>(options, counters);
}

}  // namespace kda::cuda
