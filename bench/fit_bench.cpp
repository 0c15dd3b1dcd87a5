// fit/...: what a fit costs. The interesting line is fit/against_evaluation: one run times both the
// fit of a 128-point profile and the evaluation of f at its 128 lengths and prints their ratio.

#include "bench/registration.hpp"
#include "reference/fit.hpp"
#include "reference/fit_bootstrap.hpp"
#include "reference/fit_diagnostics.hpp"
#include "reference/fit_svd.hpp"
#include "reference/predictor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace kda::bench {
namespace {

using kda::reference::Coefficients;

struct Profile {
  std::vector<std::int64_t> lengths = kda::reference::profile_lengths(8192);
  std::vector<double> latencies;

  explicit Profile(std::int64_t shift = 0) {
    for (std::int64_t& length : lengths) length += shift;
    // A little noise, from a linear congruence, so that the fit has something to do.
    std::uint64_t state = 7;
    for (const std::int64_t length : lengths) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const double noise = static_cast<double>(state >> 11) * 0x1p-53 - 0.5;
      latencies.push_back(Coefficients{2e-7, 0.02, 12}(static_cast<double>(length)) + noise);
    }
  }
};

void evaluate(const Coefficients& f, const std::vector<std::int64_t>& lengths,
              std::vector<double>& out) {
  for (std::size_t i = 0; i < lengths.size(); ++i) out[i] = f(static_cast<double>(lengths[i]));
}

void Fit128Points(benchmark::State& state) {
  const Profile profile;
  for (auto _ : state) {
    benchmark::DoNotOptimize(kda::reference::fit_quadratic(profile.lengths, profile.latencies));
  }
}

void Evaluate128Points(benchmark::State& state) {
  const Profile profile;
  std::vector<double> out(profile.lengths.size());
  Coefficients f{2e-7, 0.02, 12};
  for (auto _ : state) {
    benchmark::DoNotOptimize(f);
    evaluate(f, profile.lengths, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}

/// Seconds for `times` calls.
template <class Function>
double seconds(int times, Function function) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
}

/// Both in turn within one run, so that clock frequency and neighbours act on both alike; the least
/// of the rounds of each stands for its cost. The counter `ratio` should stay under 20.
void FitAgainstEvaluation(benchmark::State& state) {
  const Profile profile;
  std::vector<double> out(profile.lengths.size());
  Coefficients f{2e-7, 0.02, 12};
  double fit_cost = 1;
  double evaluation_cost = 1;
  for (auto _ : state) {
    fit_cost = std::min(fit_cost, seconds(20, [&] {
                          benchmark::DoNotOptimize(
                              kda::reference::fit_quadratic(profile.lengths, profile.latencies));
                        }));
    evaluation_cost = std::min(evaluation_cost, seconds(200, [&] {
                                 benchmark::DoNotOptimize(f);
                                 evaluate(f, profile.lengths, out);
                                 benchmark::DoNotOptimize(out.data());
                                 benchmark::ClobberMemory();
                               }));
  }
  state.counters["fit_us"] = fit_cost * 1e6;
  state.counters["evaluation_us"] = evaluation_cost * 1e6;
  state.counters["ratio"] = fit_cost / evaluation_cost;
}

/// Lengths of 1000080 ... 1010240: the fit that falls back on double-double.
void Fit128PointsFarFromZero(benchmark::State& state) {
  const Profile profile(1'000'000);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kda::reference::fit_quadratic(profile.lengths, profile.latencies));
  }
}

void Fit128PointsSvd(benchmark::State& state) {
  const Profile profile;
  for (auto _ : state) {
    benchmark::DoNotOptimize(kda::reference::fit_quadratic_svd(profile.lengths, profile.latencies));
  }
}

/// 10000 resamples of 128 points; the argument is the number of threads.
void Bootstrap10000(benchmark::State& state) {
  const Profile profile;
  const kda::reference::BootstrapOptions options{
      .resamples = 10000, .seed = 1, .threads = static_cast<unsigned>(state.range(0))};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        kda::reference::bootstrap_fit(profile.lengths, profile.latencies, options));
  }
}

void Diagnose128Points(benchmark::State& state) {
  const Profile profile;
  const auto fit = kda::reference::fit_quadratic(profile.lengths, profile.latencies);
  kda::reference::DiagnosticsOptions options;
  options.bootstrap.resamples = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        kda::reference::diagnose(profile.lengths, profile.latencies, fit, options));
  }
}

void PredictOneChunk(benchmark::State& state) {
  kda::reference::ChunkQuery query{
      .history_len = 65536, .base_chunk_size = 8192, .context_len = 131072};
  for (auto _ : state) {
    benchmark::DoNotOptimize(query);
    benchmark::DoNotOptimize(
        kda::reference::predict_chunk(Coefficients{2e-7, 0.02, 12}, 177.0, query));
  }
}

}  // namespace

void register_fit(const Selection& selection) {
  const auto add = [](const char* name, void (*function)(benchmark::State&)) {
    return benchmark::RegisterBenchmark(name, function);
  };
  add("fit/128_points", Fit128Points);
  add("fit/evaluate_128_points", Evaluate128Points);
  add("fit/against_evaluation", FitAgainstEvaluation);
  add("fit/128_points_far_from_zero", Fit128PointsFarFromZero);
  add("fit/128_points_svd", Fit128PointsSvd);
  auto* bootstrap = add("fit/bootstrap_10000", Bootstrap10000);
  if (!selection.quick) bootstrap->Arg(1);
  bootstrap->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
  add("fit/diagnose_128_points", Diagnose128Points)->Unit(benchmark::kMicrosecond);
  add("fit/predict_one_chunk", PredictOneChunk);
}

}  // namespace kda::bench
