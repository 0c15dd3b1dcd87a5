#pragma once

#include "cuda/fit_batch.hpp"
#include "reference/fit.hpp"
#include "tests/reference/fit_samples.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kda::cuda {

/// The profiles of many fits, one behind the other.
struct Profiles {
  std::vector<std::int64_t> seq_lens;
  std::vector<double> latencies;
  std::vector<std::int64_t> offsets{0};

  void add(const tests::Samples& samples) {
    seq_lens.insert(seq_lens.end(), samples.lengths.begin(), samples.lengths.end());
    latencies.insert(latencies.end(), samples.latencies.begin(), samples.latencies.end());
    offsets.push_back(static_cast<std::int64_t>(seq_lens.size()));
  }
  [[nodiscard]] FitBatch batch() const {
    return {.seq_lens = seq_lens, .latencies = latencies, .offsets = offsets};
  }
};

/// f in extended precision, so that the comparison adds no rounding of its own.
inline long double value_at(double a, double b, double c, std::int64_t length) {
  const auto l = static_cast<long double>(length);
  return (static_cast<long double>(a) * l + static_cast<long double>(b)) * l +
         static_cast<long double>(c);
}

/// Largest difference of the predictions at the kept lengths, against the largest prediction.
inline double prediction_error(const FitCoefficients& got, const reference::Coefficients& want,
                               const std::vector<std::int64_t>& lengths) {
  long double worst = 0;
  long double largest = 0;
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    const long double right = value_at(want.a, want.b, want.c, lengths[i]);
    worst = std::max(worst, std::abs(value_at(got.a, got.b, got.c, lengths[i]) - right));
    largest = std::max(largest, std::abs(right));
  }
  return worst == 0 ? 0 : static_cast<double>(worst / largest);
}

inline std::string code_name(const std::optional<ErrorCode>& code) {
  return code ? std::string(name(*code)) : "none";
}

/// Same code, raw coefficients where the reference has them, predictions within `tolerance`.
inline void expect_like_reference(const FitOutcome& got, const tests::Samples& samples,
                                  double tolerance, const std::string& what) {
  const reference::FitResult want = reference::fit_quadratic(samples.lengths, samples.latencies);
  EXPECT_EQ(code_name(got.error), code_name(want.error)) << what;
  ASSERT_EQ(got.coefficients.has_value(), want.raw.has_value()) << what;
  if (!want.raw) return;
  EXPECT_LE(prediction_error(*got.coefficients, *want.raw, samples.lengths), tolerance) << what;
}

}  // namespace kda::cuda
