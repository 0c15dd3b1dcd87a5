#include "harness/registry_cuda.hpp"

#include "cuda/recurrent.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace kda::harness {
namespace {

using cuda::simt::CopyMode;
using cuda::simt::Options;
using cuda::simt::Order;

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0);
}

bool same_bits(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  return a.has_value() == b.has_value() && (!a || same_bits(*a, *b));
}

/// Name of the first tensor that differs, or nothing.
const char* difference(const Outputs& a, const Outputs& b) {
  if (!same_bits(a.o, b.o)) return "o";
  if (!same_bits(a.final_state, b.final_state)) return "final_state";
  if (!same_bits(a.h, b.h)) return "h";
  return nullptr;
}

/// The GPU when the settings want it and it is there; nullptr for the executor.
std::unique_ptr<cuda::Device> gpu_for(DeviceChoice choice) {
  if (choice == DeviceChoice::kCpu) return nullptr;
  try {
    return cuda::open_gpu();
  } catch (const Error& error) {
    if (choice == DeviceChoice::kGpu || error.code() != ErrorCode::kDeviceUnavailable) throw;
    return nullptr;
  }
}

Answer run_recurrent(const Case& test_case, const KernelSettings& settings) {
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  const Problem problem = kda_case.problem();
  if (const auto gpu = gpu_for(settings.device))
    return cuda::run_recurrent(kda_case.contract, problem, *gpu);
  const std::vector<Options> modes = executor_modes(settings);
  Outputs first = cuda::run_recurrent_cpu(kda_case.contract, problem, modes.front());
  for (auto mode = modes.begin() + 1; mode != modes.end(); ++mode) {
    const Outputs other = cuda::run_recurrent_cpu(kda_case.contract, problem, *mode);
    if (const char* tensor = difference(first, other)) {
      throw Error(ErrorCode::kExecutorFault,
                  std::string(tensor) + ": the bits depend on the schedule: " +
                      to_string(modes.front()) + " and " + to_string(*mode) + " differ");
    }
  }
  return first;
}

std::optional<std::string> recurrent_limit(const Case& test_case) {
  return cuda::recurrent_unsupported(std::get<KdaCase>(test_case.inputs).problem());
}

}  // namespace

std::vector<Options> executor_modes(const KernelSettings& settings) {
  std::vector<CopyMode> copies;
  if (settings.copies != CopyTiming::kEager) copies.push_back(CopyMode::kLate);
  if (settings.copies != CopyTiming::kLate) copies.push_back(CopyMode::kEager);
  const bool seeded = settings.order == Order::kRandom || settings.order == Order::kPct;
  std::vector<Options> modes;
  for (const CopyMode copy : copies) {
    modes.push_back(
        {.order = Order::kInOrder, .copies = copy});  // what the others are compared with
    if (settings.order == Order::kInOrder) continue;
    for (std::int64_t seed = 1; seed <= (seeded ? settings.seeds : 1); ++seed) {
      modes.push_back(
          {.order = settings.order, .seed = static_cast<std::uint64_t>(seed), .copies = copy});
    }
  }
  return modes;
}

std::string to_string(const Options& mode) {
  constexpr std::array kOrders{"inorder", "reverse", "random", "pct"};
  constexpr std::array kCopies{"late", "eager", "random"};
  std::string text = kOrders[static_cast<std::size_t>(mode.order)];
  if (mode.order == Order::kRandom || mode.order == Order::kPct)
    text += " seed " + std::to_string(mode.seed);
  return text + ", copies " + kCopies[static_cast<std::size_t>(mode.copies)];
}

std::vector<Implementation> cuda_implementations() {
  std::vector<Implementation> all;
  all.push_back({.name = "cuda-recurrent",
                 .description = "CUDA token recurrence in f32: decode and short runs",
                 .ops = {Op::kChunkKda, Op::kRecurrentKda},
                 .limit = recurrent_limit,
                 .run = run_recurrent,
                 .by_head = true});
  return all;
}

}  // namespace kda::harness
