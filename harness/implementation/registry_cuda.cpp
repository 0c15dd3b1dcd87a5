#include "harness/implementation/registry_cuda.hpp"

#include "cuda/fit_batch.hpp"
#include "cuda/prefill.hpp"
#include "cuda/recurrent.hpp"
#include "harness/case/same_bits.hpp"
#include "harness/implementation/prefill_stages.hpp"
#include "harness/implementation/registry_fit.hpp"
#include "reference/fit_bootstrap.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>

namespace kda::harness {
namespace {

using cuda::simt::CopyMode;
using cuda::simt::Options;
using cuda::simt::Order;

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

[[noreturn]] void throw_race(const std::string& what, const Options& one, const Options& other) {
  throw Error(ErrorCode::kExecutorFault,
              what + ": the bits depend on the schedule: " + to_string(one) + " and " +
                  to_string(other) + " differ");
}

/// On the GPU where there is one, else on the executor in every mode asked for, which must agree.
Outputs run_kernel(const KernelSettings& settings,
                   const std::function<Outputs(cuda::Device&)>& kernel) {
  if (const auto gpu = gpu_for(settings.device)) return kernel(*gpu);
  const std::vector<Options> modes = executor_modes(settings);
  Outputs first = kernel(*cuda::open_executor(modes.front()));
  for (auto mode = modes.begin() + 1; mode != modes.end(); ++mode) {
    const Outputs other = kernel(*cuda::open_executor(*mode));
    if (const char* tensor = difference(first, other)) {
      throw_race(tensor, modes.front(), *mode);
    }
  }
  return first;
}

Answer run_recurrent(const Case& test_case, const KernelSettings& settings) {
  const auto& kda_case = std::get<KdaCase>(test_case.inputs);
  const Problem problem = kda_case.problem();
  return run_kernel(settings, [&](cuda::Device& device) {
    return cuda::run_recurrent(kda_case.contract, problem, device);
  });
}

template <cuda::PrefillPolicy kPolicy>
Answer run_prefill(const Case& test_case, const KernelSettings& settings) {
  const Problem problem = std::get<KdaCase>(test_case.inputs).problem();
  // Segments change no bit. Where faults are injected, short ones bring the state through the
  // workspace in cases that are small enough.
  const bool injecting = settings.mutation != nullptr || settings.sites != nullptr;
  const cuda::PrefillOptions options{.policy = kPolicy, .chunks_per_segment = injecting ? 1 : 0};
  return run_kernel(
      settings, [&](cuda::Device& device) { return cuda::run_prefill(problem, options, device); });
}

template <cuda::PrefillPolicy kPolicy>
std::string diagnose_prefill_with(const Case& test_case) {
  return diagnose_prefill(test_case, kPolicy);
}

std::optional<std::string> recurrent_limit(const Case& test_case) {
  return cuda::recurrent_unsupported(std::get<KdaCase>(test_case.inputs).problem());
}

bool same_bits(const cuda::FitOutcome& a, const cuda::FitOutcome& b) {
  using Bits = std::array<std::uint64_t, 3>;
  return a.error == b.error && a.coefficients.has_value() == b.coefficients.has_value() &&
         (!a.coefficients ||
          std::bit_cast<Bits>(*a.coefficients) == std::bit_cast<Bits>(*b.coefficients));
}

cuda::FitOutcome fit_on_device(const FitCase& fit_case, const KernelSettings& settings) {
  const auto fit = [&](cuda::Device& device) {
    return cuda::run_fit(fit_case.seq_lens, fit_case.latencies, device);
  };
  if (const auto gpu = gpu_for(settings.device)) return fit(*gpu);
  const std::vector<Options> modes = executor_modes(settings);
  const cuda::FitOutcome first = fit(*cuda::open_executor(modes.front()));
  for (auto mode = modes.begin() + 1; mode != modes.end(); ++mode) {
    if (!same_bits(first, fit(*cuda::open_executor(*mode))))
      throw_race("coefficients", modes.front(), *mode);
  }
  return first;
}

/// The kernel gives raw coefficients and a code; the correction is the reference's rule.
Answer run_fit(const Case& test_case, const KernelSettings& settings) {
  const auto& fit_case = std::get<FitCase>(test_case.inputs);
  const cuda::FitOutcome outcome = fit_on_device(fit_case, settings);
  reference::FitResult fit;
  fit.error = outcome.error;
  if (const auto& f = outcome.coefficients) {
    fit.raw = {f->a, f->b, f->c};
  }
  if (!fit.error) {
    fit.corrected = reference::corrected(*fit.raw);
    if (fit.raw->b < 0) fit.warnings.push_back({.code = ErrorCode::kFitBNegative, .message = {}});
  }
  return answer_fit(fit_case, fit);
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
  for (Options& mode : modes) {
    mode.mutation = settings.mutation;
    mode.sites = settings.sites;
    if (settings.sites != nullptr) mode.workers = 1;
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
                 .by_head = true,
                 .formats = f32_formats()});
  all.push_back({.name = "cuda-prefill",
                 .description = "CUDA chunked prefill on matrix units",
                 .ops = {Op::kKdaPrefill},
                 .limit = {},
                 .run = run_prefill<cuda::PrefillPolicy::kMixed>,
                 .by_head = true,
                 .diagnose = diagnose_prefill_with<cuda::PrefillPolicy::kMixed>,
                 .formats = prefill_formats()});
  all.push_back({.name = "cuda-prefill-x",
                 .description = "cuda-prefill with every operand as two bf16 parts",
                 .ops = {Op::kKdaPrefill},
                 .limit = {},
                 .run = run_prefill<cuda::PrefillPolicy::kSplit>,
                 .by_head = true,
                 .on_request = true,
                 .diagnose = diagnose_prefill_with<cuda::PrefillPolicy::kSplit>,
                 .formats = prefill_formats()});
  all.push_back({.name = "cuda-prefill-bf16",
                 .description = "cuda-prefill with single bf16 operands, for comparison",
                 .ops = {Op::kKdaPrefill},
                 .limit = {},
                 .run = run_prefill<cuda::PrefillPolicy::kBf16>,
                 .by_head = true,
                 .on_request = true,
                 .diagnose = diagnose_prefill_with<cuda::PrefillPolicy::kBf16>});
  all.push_back({.name = "cuda-fit",
                 .description = "CUDA batched quadratic fits in f64, a warp each",
                 .ops = {Op::kFit},
                 .limit = {},
                 .run = run_fit,
                 .by_head = false});
  return all;
}

}  // namespace kda::harness
