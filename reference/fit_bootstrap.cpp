#include "reference/fit_bootstrap.hpp"

#include "reference/fit_solve.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace kda::reference {
namespace {

/// The output function of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters bits.
constexpr std::uint64_t scatter(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

/// Draws of one resample: counter-based, so that resamples need no common state.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t resample)
      : key_(scatter(scatter(seed + kGolden) + kGolden * (resample + 1))) {}

  /// Position `draw` of the resample: one of 0 ... n - 1, n < 2^32.
  [[nodiscard]] std::size_t operator()(std::uint64_t draw, std::size_t n) const {
    const std::uint64_t bits = scatter(key_ + kGolden * (draw + 1)) >> 32;
    return static_cast<std::size_t>((bits * n) >> 32);
  }

 private:
  std::uint64_t key_;
};

bool fewer_than_3_distinct(std::span<const double> x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return std::ranges::all_of(
      x, [low = *low, high = *high](double value) { return value == low || value == high; });
}

/// Fits resamples first, first + stride, ... into their places; NaN marks an unsolved one.
void fit_resamples(const CentredSamples& samples, std::uint64_t seed, std::size_t first,
                   std::size_t stride, std::span<Coefficients> out) {
  const std::size_t n = samples.x.size();
  std::vector<double> x(n);
  std::vector<double> y(n);
  std::vector<double> work;
  for (std::size_t resample = first; resample < out.size(); resample += stride) {
    const Draws draw(seed, resample);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t chosen = draw(i, n);
      x[i] = samples.x[chosen];
      y[i] = samples.y[chosen];
    }
    if (fewer_than_3_distinct(x)) {
      out[resample].a = std::nan("");
      continue;
    }
    const auto solution = solve_centred<double>(x, y, work);
    const Powers<double> powers = to_length_powers(solution.coefficients, samples);
    const auto unscale = [&](double value) { return std::ldexp(value, samples.latency_exponent); };
    out[resample] = {unscale(powers[2]), unscale(powers[1]), unscale(powers[0])};
  }
}

bool solved(const Coefficients& f) {
  return std::isfinite(f.a) && std::isfinite(f.b) && std::isfinite(f.c);
}

}  // namespace

Bootstrap bootstrap_fit(std::span<const std::int64_t> seq_lens, std::span<const double> latencies,
                        const BootstrapOptions& options) {
  Bootstrap out;
  if (check_samples(seq_lens, latencies)) return out;
  const CentredSamples samples = centre_samples(seq_lens.subspan(1), latencies.subspan(1));
  std::vector<Coefficients> all(options.resamples);
  const std::size_t wanted =
      options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  // A thread costs about as much as ten resamples.
  const std::size_t threads = std::clamp<std::size_t>(options.resamples / 100, 1, wanted);
  {
    std::vector<std::jthread> workers;
    for (std::size_t first = 1; first < threads; ++first) {
      workers.emplace_back(
          [&, first] { fit_resamples(samples, options.seed, first, threads, all); });
    }
    fit_resamples(samples, options.seed, 0, threads, all);
  }
  out.raw.reserve(all.size());
  std::ranges::copy_if(all, std::back_inserter(out.raw), solved);
  out.unsolved = all.size() - out.raw.size();
  const auto not_positive =
      std::ranges::count_if(out.raw, [](const Coefficients& f) { return f.a <= 0; });
  if (!out.raw.empty()) {
    out.share_a_not_positive =
        static_cast<double>(not_positive) / static_cast<double>(out.raw.size());
  }
  return out;
}

std::optional<Interval> percentile_interval(
    const Bootstrap& bootstrap, double confidence,
    const std::function<double(const Coefficients&)>& number) {
  if (bootstrap.raw.empty()) return std::nullopt;
  std::vector<double> values(bootstrap.raw.size());
  std::ranges::transform(bootstrap.raw, values.begin(), number);
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::ptrdiff_t>(place);
    const auto at = values.begin() + below;
    std::ranges::nth_element(values, at);
    if (at + 1 == values.end()) return *at;
    const double next = *std::min_element(at + 1, values.end());
    return *at + (place - static_cast<double>(below)) * (next - *at);
  };
  return Interval{quantile((1 - confidence) / 2), quantile((1 + confidence) / 2)};
}

}  // namespace kda::reference
