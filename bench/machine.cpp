#include "bench/machine.hpp"

#include "bench/fma_rate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

namespace kda::bench {
namespace {

using Clock = std::chrono::steady_clock;
using reference::InstructionSet;

constexpr long long kRounds = 1 << 20;  ///< of the loop of multiply-adds: some milliseconds

struct FmaLoop {
  double (*rounds)(long long);
  int lanes;
};

FmaLoop fma_loop(InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline: return {fma_rounds_baseline, 2};
    case InstructionSet::kAvx2: return {fma_rounds_avx2, 4};
    case InstructionSet::kAvx512: return {fma_rounds_avx512, 8};
  }
  return {fma_rounds_baseline, 2};
}

/// Runs `work(thread)` on every core at once; seconds until all are done.
double together(unsigned threads, const std::function<void(unsigned)>& work) {
  const auto begin = Clock::now();
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& t : others) t.join();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Read and written bytes per second.
double copy_rate(unsigned threads) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;  // a thread, each of source and target
  std::vector<std::vector<char>> from(threads);
  std::vector<std::vector<char>> to(threads);
  together(threads, [&](unsigned i) {
    from[i].assign(kBytes, 1);
    to[i].assign(kBytes, 2);
  });
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double seconds = together(threads, [&](unsigned i) {
      std::memcpy(to[i].data(), from[i].data(), kBytes);
      benchmark::DoNotOptimize(to[i].data());
    });
    best = std::max(best, 2.0 * static_cast<double>(kBytes) * threads / seconds);
  }
  return best;
}

}  // namespace

double fma_rate(InstructionSet set) {
  const FmaLoop loop = fma_loop(set);
  double best = 0;
  for (int repeat = 0; repeat < 10; ++repeat) {
    const std::clock_t start = std::clock();
    benchmark::DoNotOptimize(loop.rounds(kRounds));
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    best = std::max(best, static_cast<double>(kRounds) * kFmaChains * loop.lanes / seconds);
  }
  return best;
}

const Rates& machine_rates() {
  static const Rates rates = [] {
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    double best = 0;
    for (const InstructionSet set : reference::available_instruction_sets())
      best = std::max(best, fma_rate(set));
    return Rates{.bytes_per_second = copy_rate(threads), .flops_per_second = 2 * best * threads};
  }();
  return rates;
}

}  // namespace kda::bench
