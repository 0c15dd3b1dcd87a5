#include "harness/run/run_bias.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr std::int64_t kFewestRows = 16;
constexpr std::size_t kFewestCases = 8;
constexpr double kMostMean = 0.15;
constexpr double kMostT = 6;

/// The mean of z sign(exact) over `o`, where the case says something about it.
std::optional<double> lean(const CaseResult& result) {
  if (result.verdict != Verdict::kPassed || !result.comparison) return std::nullopt;
  const TensorReport* o = result.comparison->find("o");
  if (o == nullptr || !o->use || o->use->sums.rows < kFewestRows) return std::nullopt;
  return o->use->sums.mean();
}

RunBias bias_of(const std::string& implementation, const std::vector<double>& means) {
  RunBias bias;
  bias.implementation = implementation;
  bias.cases = static_cast<std::int64_t>(means.size());
  const auto count = static_cast<double>(means.size());
  for (const double mean : means) bias.mean += mean / count;
  double square = 0;
  for (const double mean : means) square += (mean - bias.mean) * (mean - bias.mean);
  const double error = std::sqrt(square / (count * std::max(1.0, count - 1)));
  if (bias.mean != 0)
    bias.t = error > 0 ? bias.mean / error
                       : std::copysign(std::numeric_limits<double>::infinity(), bias.mean);
  bias.failed =
      means.size() >= kFewestCases && std::abs(bias.mean) > kMostMean && std::abs(bias.t) > kMostT;
  return bias;
}

}  // namespace

std::vector<RunBias> run_biases(const std::vector<CaseResult>& results) {
  std::vector<std::pair<std::string, std::vector<double>>> all;
  for (const CaseResult& result : results) {
    const std::optional<double> mean = lean(result);
    if (!mean) continue;
    auto same = std::ranges::find_if(
        all, [&](const auto& entry) { return entry.first == result.implementation; });
    if (same == all.end()) same = all.insert(all.end(), {result.implementation, {}});
    same->second.push_back(*mean);
  }
  std::vector<RunBias> biases;
  for (const auto& [implementation, means] : all) biases.push_back(bias_of(implementation, means));
  return biases;
}

std::string to_text(const RunBias& bias) {
  return fmt::format(
      "errors of o lean {} by {:.2g} sigma on the mean of {} cases (t = {:.3g}); wanted at most "
      "{:.2g}, or |t| at most {}{}",
      bias.mean < 0 ? "towards 0" : "away from 0", std::abs(bias.mean), bias.cases, bias.t,
      kMostMean, kMostT,
      bias.failed && bias.mean < 0 ? ": results are cut off where they should be rounded" : "");
}

}  // namespace kda::harness
