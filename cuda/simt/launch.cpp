#include "cuda/simt/launch.hpp"

#include "cuda/simt/overflow.hpp"
#include "cuda/simt/worker.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kda::cuda::simt {
namespace {

/// Idle workers, for the next launch with blocks of their size.
class Pool {
 public:
  static Pool& instance() {
    static Pool pool;
    return pool;
  }

  std::unique_ptr<Worker> take(unsigned threads) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(idle_.begin(), idle_.end(),
                                      [&](const auto& w) { return w->threads() == threads; });
      if (found != idle_.end()) {
        auto worker = std::move(*found);
        idle_.erase(found);
        return worker;
      }
    }
    return std::make_unique<Worker>(threads);
  }

  void put(std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() >= kMaxIdle) idle_.erase(idle_.begin());
    idle_.push_back(std::move(worker));
  }

 private:
  static constexpr std::size_t kMaxIdle = 16;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

std::optional<std::string> beyond_limits(const LaunchConfig& config) {
  const Dim3& g = config.grid;
  const Dim3& b = config.block;
  const auto text = [](const Dim3& d) {
    return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z);
  };
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > kMaxGridX || g.y > kMaxGridYz || g.z > kMaxGridYz) {
    return "grid " + text(g) + ": wanted 1 to 2147483647,65535,65535";
  }
  const std::uint64_t threads = std::uint64_t{b.x} * b.y * b.z;
  if (threads == 0 || threads > kMaxThreads || b.z > 64) {
    return "block " + text(b) + ": wanted 1 to 1024 threads, z up to 64";
  }
  if (config.shared_bytes > kMaxSharedBytes) {
    return std::to_string(config.shared_bytes) + " bytes of shared memory: wanted up to " +
           std::to_string(kMaxSharedBytes);
  }
  return std::nullopt;
}

Report report_without_thread(const LaunchConfig& config, FaultKind kind, std::string detail) {
  Report report;
  report.kind = kind;
  report.kernel = config.name;
  report.detail = std::move(detail);
  return report;
}

/// What the workers of one launch share.
struct Progress {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  LaunchResult result;
  std::uint64_t failed_block = 0;
};

void run_blocks(Worker& worker, std::uint64_t blocks, Progress& progress) {
  bool healthy = true;
  std::uint64_t number = 0;
  while (healthy && !progress.stop) {
    number = progress.next.fetch_add(1, std::memory_order_relaxed);
    if (number >= blocks) break;
    healthy = worker.run(number);
  }
  const std::lock_guard lock(progress.mutex);
  Counters& all = progress.result.counters;
  const std::uint64_t longest = std::max(all.path_barriers, worker.counters().path_barriers);
  all += worker.counters();
  all.path_barriers = longest;  // blocks do not wait for each other
  if (healthy) return;
  progress.stop = true;
  if (!progress.result.fault || number < progress.failed_block) {
    progress.result.fault = worker.report();
    progress.failed_block = number;
  }
}

}  // namespace

LaunchResult try_run(const LaunchConfig& config, const Options& options, const Memory& memory,
                     void (*body)(void*), void* argument) {
  if (auto wrong = beyond_limits(config)) {
    return {{}, report_without_thread(config, FaultKind::kBadLaunch, *std::move(wrong))};
  }
  const Dim3& b = config.block;
  const Dim3& g = config.grid;
  const std::uint64_t blocks = std::uint64_t{g.x} * g.y * g.z;
  const unsigned wanted =
      options.workers != 0 ? options.workers : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<Worker>> workers(std::min<std::uint64_t>(wanted, blocks));
  for (auto& worker : workers) worker = Pool::instance().take(b.x * b.y * b.z);
  Progress progress;
  const auto work = [&](Worker& worker) {
    const OverflowWatch watch;
    worker.bind(config, options, memory, {body, argument});
    run_blocks(worker, blocks, progress);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < workers.size(); ++i) others.emplace_back(work, std::ref(*workers[i]));
  work(*workers.front());
  for (std::thread& t : others) t.join();
  if (!progress.result.fault) {
    // After a fault there are abandoned fibers, which cannot be used again.
    for (auto& worker : workers) Pool::instance().put(std::move(worker));
    if (const Memory::Buffer* hit = memory.damaged()) {
      progress.result.fault = report_without_thread(
          config, FaultKind::kGuardBand, "bytes beside '" + hit->name + "' were overwritten");
    }
  }
  return std::move(progress.result);
}

Counters value_or_throw(const LaunchResult& result) {
  if (result.fault) throw Error(ErrorCode::kExecutorFault, result.fault->text());
  return result.counters;
}

}  // namespace kda::cuda::simt
