#include "bench/gpu_timer.hpp"

#include <chrono>

namespace kda::bench {
namespace {

class Rehearsal final : public GpuTimer {
 public:
  explicit Rehearsal(std::size_t l2_bytes) : l2_bytes_(l2_bytes) {}

  cuda::Device& device() override { return *device_; }
  void release() override {
    calls_ = {};
    device_ = cuda::open_executor({});
  }
  void record(const std::function<void()>& calls) override { calls_ = calls; }
  double seconds() override {
    const auto begin = std::chrono::steady_clock::now();
    calls_();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  [[nodiscard]] std::size_t l2_bytes() const override { return l2_bytes_; }
  const GpuRates& rates() override {
    static constexpr GpuRates kRates{1e15, 1e18, 1e18};
    return kRates;
  }
  [[nodiscard]] std::string name() const override { return "CPU executor"; }
  [[nodiscard]] std::string driver() const override { return "none"; }

 private:
  std::size_t l2_bytes_;
  std::unique_ptr<cuda::Device> device_ = cuda::open_executor({});
  std::function<void()> calls_ = [] {};
};

}  // namespace

std::unique_ptr<GpuTimer> open_rehearsal(std::size_t l2_bytes) {
  return std::make_unique<Rehearsal>(l2_bytes);
}

}  // namespace kda::bench
