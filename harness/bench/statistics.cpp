#include "harness/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace kda::harness {
namespace {

constexpr std::size_t kMostExact = 30;

/// Orders as doubles: number of ways in which n and m values without ties give each U.
std::vector<double> orders_by_u(std::size_t n, std::size_t m) {
  // Adding the i-th of the first sample above any j of the second: the Gaussian binomial, built as
  // a product of (1 - x^(m+i)) / (1 - x^i).
  std::vector<double> ways(n * m + 1, 0.0);
  ways[0] = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t u = ways.size(); u-- > m + i;) ways[u] -= ways[u - m - i];
    for (std::size_t u = i; u < ways.size(); ++u) ways[u] += ways[u - i];
  }
  return ways;
}

double exact_p(double u, std::size_t n, std::size_t m) {
  const std::vector<double> ways = orders_by_u(n, m);
  const auto extreme =
      static_cast<std::size_t>(std::min(u, static_cast<double>(n * m) - u));  // whole: no ties
  double all = 0;
  double tail = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    all += ways[i];
    if (i <= extreme) tail += ways[i];
  }
  return std::min(1.0, 2 * tail / all);
}

/// Sum of t^3 - t over groups of t equal values.
double tie_term(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double term = 0;
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = std::upper_bound(begin, values.end(), *begin);
    const auto t = static_cast<double>(end - begin);
    term += t * t * t - t;
    begin = end;
  }
  return term;
}

double approximate_p(double u, double n, double m, double ties) {
  const double all = n + m;
  const double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
  if (!(variance > 0)) return 1;  // every value is the same
  const double z = (std::abs(u - n * m / 2) - 0.5) / std::sqrt(variance);
  return std::min(1.0, std::erfc(z / std::sqrt(2.0)));
}

}  // namespace

double median(std::span<const double> sample) {
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : std::midpoint(sorted[half - 1], sorted[half]);
}

MannWhitney mann_whitney(std::span<const double> first, std::span<const double> second) {
  MannWhitney test;
  bool ties_between = false;
  for (const double x : first) {
    for (const double y : second) {
      test.u += y > x ? 1.0 : (y == x ? 0.5 : 0.0);
      ties_between = ties_between || x == y;
    }
  }
  const std::size_t n = first.size();
  const std::size_t m = second.size();
  if (!ties_between && n <= kMostExact && m <= kMostExact) {
    test.p = exact_p(test.u, n, m);  // ties within a sample do not change U
    return test;
  }
  std::vector<double> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  test.p = approximate_p(test.u, static_cast<double>(n), static_cast<double>(m), tie_term(all));
  return test;
}

double median_band(std::span<const double> sample) {
  constexpr double kSigmaOfMad = 1.4826;     // of a normal distribution
  constexpr double kSigmaOfMedian = 1.2533;  // sqrt(pi / 2): of a median, over that of a mean
  constexpr double kTwoSided95 = 1.96;
  const auto n = static_cast<double>(sample.size());
  if (n < 2) return std::numeric_limits<double>::infinity();
  std::vector<double> logs(sample.size());
  std::transform(sample.begin(), sample.end(), logs.begin(), [](double x) { return std::log(x); });
  const double middle = median(logs);
  for (double& x : logs) x = std::abs(x - middle);
  // n / (n - 0.8): the deviation of small samples is too small (Croux and Rousseeuw 1992).
  const double sigma = kSigmaOfMad * median(logs) * n / (n - 0.8);
  return kTwoSided95 * std::sqrt(2 / n) * kSigmaOfMedian * sigma;
}

std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t x = state += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace kda::harness
