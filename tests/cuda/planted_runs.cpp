#include "tests/cuda/planted_runs.hpp"

#include "tests/cuda/planted_kernels.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <utility>

namespace kda::cuda::planted {
namespace {

using simt::Memory;

/// Input and output buffers of a run.
class Buffers {
 public:
  template <class T>
  Global<const T> input(const char* name, const std::vector<T>& values) {
    T* data = place(name, values, Memory::Access::kRead);
    return {data};
  }
  template <class T>
  Global<T> output(const char* name, const std::vector<T>& values) {
    return {place(name, values, Memory::Access::kReadWrite)};
  }
  [[nodiscard]] const Memory& memory() const { return memory_; }

 private:
  template <class T>
  T* place(const char* name, const std::vector<T>& values, Memory::Access access) {
    const std::size_t bytes = values.size() * sizeof(T);
    auto* data = reinterpret_cast<T*>(memory_.allocate(name, bytes, access));
    std::memcpy(data, values.data(), bytes);
    return data;
  }
  Memory memory_;
};

std::vector<Bf16> random_bf16(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Bf16> values(n);
  for (Bf16& x : values) x = to_bf16(normal(random));
  return values;
}

std::vector<float> uniform(std::size_t n, unsigned seed, float low, float high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(n);
  for (float& x : values) x = distribution(random);
  return values;
}

/// Rows of 128 scaled to length 1.
std::vector<Bf16> unit_rows(std::vector<Bf16> values) {
  for (std::size_t row = 0; row < values.size(); row += 128) {
    double sum = 0;
    for (std::size_t i = row; i < row + 128; ++i) {
      sum += static_cast<double>(to_float(values[i])) * to_float(values[i]);
    }
    for (std::size_t i = row; i < row + 128; ++i) {
      values[i] = to_bf16(static_cast<float>(to_float(values[i]) / std::sqrt(sum)));
    }
  }
  return values;
}

/// Runs, and judges by `right()` when the kernel came to its end.
template <class Right, class... Parameters, class... Arguments>
Outcome judge(const simt::LaunchConfig& config, const simt::Options& options,
              const Buffers& buffers, Right right, void (*kernel)(Parameters...),
              const Arguments&... arguments) {
  simt::LaunchResult result =
      simt::try_launch(config, options, buffers.memory(), kernel, arguments...);
  Outcome outcome{false, std::move(result.fault), result.counters};
  if (!outcome.fault) outcome.wrong = !right();
  return outcome;
}

template <Fault kFault>
Outcome run_gemm(const simt::Options& options) {
  constexpr int kM = 64;
  constexpr int kN = 128;
  constexpr int kK = 128;
  const auto a = random_bf16(kM * kK, 1);
  const auto b = random_bf16(kN * kK, 2);
  Buffers buffers;
  const auto a_in = buffers.input("a", a);
  const auto b_in = buffers.input("b", b);
  const auto c = buffers.output("c", std::vector<float>(kM * kN, NAN));
  const auto right = [&] {
    for (std::size_t i = 0; i < kM; ++i) {
      for (std::size_t j = 0; j < kN; ++j) {
        double sum = 0;
        double size = 0;
        for (std::size_t k = 0; k < kK; ++k) {
          const double term =
              static_cast<double>(to_float(a[i * kK + k])) * to_float(b[j * kK + k]);
          sum += term;
          size += std::abs(term);
        }
        // 128 additions in f32.
        if (!(std::abs(c.raw[i * kN + j] - sum) <= 1e-5 * size)) return false;
      }
    }
    return true;
  };
  return judge({"gemm", {kN / 64, kM / 64, 1}, {128, 1, 1}, kGemmSharedBytes}, options, buffers,
               right, &gemm_kernel<kFault>, a_in, b_in, c, kN, kK);
}

/// The delta rule in f64; o and the final state.
struct DeltaResult {
  std::vector<double> o;
  std::vector<double> state;
};

/// State [K,V] before the first token.
template <class T>
std::vector<T> first_state() {
  std::vector<T> state(128 * 128);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<T>(i % 7) / 16;
  return state;
}

DeltaResult delta_rule(const std::vector<Bf16>& q, const std::vector<Bf16>& k,
                       const std::vector<Bf16>& v, const std::vector<float>& g,
                       const std::vector<float>& beta) {
  DeltaResult r{std::vector<double>(v.size()), first_state<double>()};
  for (std::size_t t = 0; t < beta.size(); ++t) {
    for (std::size_t c = 0; c < 128; ++c) {
      double read = 0;
      for (std::size_t i = 0; i < 128; ++i) {
        double& s = r.state[i * 128 + c];
        s *= std::exp(static_cast<double>(g[t * 128 + i]));
        read += to_float(k[t * 128 + i]) * s;
      }
      const double write = beta[t] * (to_float(v[t * 128 + c]) - read);
      for (std::size_t i = 0; i < 128; ++i) {
        double& s = r.state[i * 128 + c];
        s += to_float(k[t * 128 + i]) * write;
        r.o[t * 128 + c] += to_float(q[t * 128 + i]) * s;
      }
    }
  }
  return r;
}

template <Fault kFault>
Outcome run_delta(const simt::Options& options) {
  constexpr std::size_t kT = 12;
  constexpr std::size_t kCount = kT * 128;
  const auto q = unit_rows(random_bf16(kCount, 3));
  const auto k = unit_rows(random_bf16(kCount, 4));
  const auto v = random_bf16(kCount, 5);
  const auto g = uniform(kCount, 6, -0.2F, 0.0F);
  const auto beta = uniform(kT, 7, 0.0F, 1.0F);
  static const DeltaResult kRight = delta_rule(q, k, v, g, beta);
  Buffers buffers;
  DeltaArgs args{buffers.input("q", q),
                 buffers.input("k", k),
                 buffers.input("v", v),
                 buffers.input("g", g),
                 buffers.input("beta", beta),
                 buffers.output("state", first_state<float>()),
                 buffers.output("o", std::vector<Bf16>(kCount, Bf16{0x7FFF})),
                 static_cast<int>(kT),
                 1,
                 1.0F};
  const auto right = [&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      // o is rounded to bf16: 2^-8 of itself, with a margin for f32 sums.
      const double bound = 4e-3 * (std::abs(kRight.o[i]) + 0.01);
      if (!(std::abs(to_float(args.o.raw[i]) - kRight.o[i]) <= bound)) return false;
    }
    for (std::size_t i = 0; i < kRight.state.size(); ++i) {
      if (!(std::abs(args.state.raw[i] - kRight.state[i]) <= 1e-5)) return false;
    }
    return true;
  };
  return judge({"delta", {4, 1, 1}, {128, 1, 1}, kDeltaSharedBytes}, options, buffers, right,
               &delta_kernel<kFault>, args);
}

template <Fault kFault>
Outcome run_block_sum(const simt::Options& options) {
  constexpr int kCount = 5000;
  const auto x = uniform(kCount, 8, -1.0F, 1.0F);
  double sum = 0;
  int positives = 0;
  for (const float value : x) {
    sum += value;
    positives += value > 0 ? 1 : 0;
  }
  Buffers buffers;
  const auto x_in = buffers.input("x", x);
  const auto out = buffers.output("out", std::vector<float>{0.0F});
  const auto count = buffers.output("positives", std::vector<int>{0});
  const auto right = [&] {
    return *count.raw == positives && std::abs(*out.raw - sum) <= 1e-6 * kCount;
  };
  return judge({"block_sum", {20, 1, 1}, {256, 1, 1}, 0}, options, buffers, right,
               &block_sum_kernel<kFault>, x_in, kCount, out, count);
}

template <Fault kFault>
Outcome run_warp_reverse(const simt::Options& options) {
  std::vector<float> x(128);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  Buffers buffers;
  // Writable by type, so that only the executor can object.
  const Global<float> x_in{const_cast<float*>(buffers.input("x", x).raw)};
  const auto y = buffers.output("y", std::vector<float>(128, NAN));
  const auto right = [&] {
    for (std::size_t i = 0; i < 128; ++i) {
      if (y.raw[i] != x[i / 32 * 32 + 31 - i % 32] + 5.0F) return false;
    }
    return true;
  };
  return judge({"warp_reverse", {1, 1, 1}, {128, 1, 1}, 0}, options, buffers, right,
               &warp_reverse_kernel<kFault>, x_in, y, 5);
}

template <Fault kFault>
Outcome run_producer_consumer(const simt::Options& options) {
  constexpr int kSteps = 20;
  constexpr int kBlocks = 3;
  std::vector<float> x(kSteps * 32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  Buffers buffers;
  const auto x_in = buffers.input("x", x);
  const auto y = buffers.output("y", std::vector<float>(kBlocks * kSteps * 96, NAN));
  const auto right = [&] {
    for (std::size_t i = 0; i < kBlocks * kSteps * 96; ++i) {
      const std::size_t step = i / 96 % kSteps;
      if (y.raw[i] != 2.0F * x[step * 32 + 31 - i % 96 % 32]) return false;
    }
    return true;
  };
  return judge({"producer_consumer", {kBlocks, 1, 1}, {128, 1, 1}, 0}, options, buffers, right,
               &producer_consumer_kernel<kFault>, x_in, y, kSteps);
}

}  // namespace

std::vector<Plant> plants() {
  using enum Fault;
  using enum PlantKind;
  return {
      {"gemm", kCorrect, &run_gemm<kNone>},
      {"delta", kCorrect, &run_delta<kNone>},
      {"block sum", kCorrect, &run_block_sum<kNone>},
      {"warp reverse", kCorrect, &run_warp_reverse<kNone>},
      {"producer consumer", kCorrect, &run_producer_consumer<kNone>},
      {"gemm: no sync before compute", kRace, &run_gemm<kNoSyncBefore>},
      {"gemm: no sync after compute", kRace, &run_gemm<kNoSyncAfter>},
      {"gemm: cp.async wait missing", kFault, &run_gemm<kNoWait>},
      {"gemm: prefetch into the stage in use", kFault, &run_gemm<kWrongStage>},
      {"gemm: shared row never written", kFault, &run_gemm<kRowUnwritten>},
      {"gemm: shared write one beyond", kFault, &run_gemm<kWriteBeyond>},
      {"gemm: divergent sync_block", kFault, &run_gemm<kDivergentSync>},
      {"gemm: exit before a barrier", kFault, &run_gemm<kEarlyExit>},
      {"gemm: one lane skips an mma", kFault, &run_gemm<kLaneSkipsMma>},
      {"gemm: shared memory over request", kFault, &run_gemm<kSharedTooBig>},
      {"gemm: copies in flight at exit", kFault, &run_gemm<kCopyLeftBehind>},
      {"delta: no sync", kRace, &run_delta<kNoSyncBefore>},
      {"delta: sync skipped at step 7", kRace, &run_delta<kSkipOneSync>},
      {"delta: single buffer", kRace, &run_delta<kSingleBuffer>},
      {"delta: static array one beyond", kFault, &run_delta<kStaticBeyond>},
      {"block sum: no sync", kRace, &run_block_sum<kNoSyncBefore>},
      {"block sum: global read beyond", kFault, &run_block_sum<kReadBeyond>},
      {"warp reverse: no sync_warp", kRace, &run_warp_reverse<kNoSyncWarp>},
      {"warp reverse: write to input", kFault, &run_warp_reverse<kWriteInput>},
      {"named barriers: no full", kRace, &run_producer_consumer<kNoSyncBefore>},
      {"named barriers: no empty", kRace, &run_producer_consumer<kNoSyncAfter>},
  };
}

}  // namespace kda::cuda::planted
