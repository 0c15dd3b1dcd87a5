#include "harness/run/judge.hpp"
#include "reference/fit.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Of predictions, against the largest; the floor of the coefficients' own tolerance too.
constexpr double kPredictionTolerance = 1e-10;
/// Of coefficients, times the condition number of the unscaled design.
constexpr double kCoefficientTolerance = 1e-13;

void fail(CaseResult& result, std::string_view code, std::string detail) {
  result.verdict = Verdict::kFailed;
  result.code = code;
  result.detail = std::move(detail);
}

/// Written so that NaN is no match.
bool close(double got, double want, double tolerance) {
  return std::abs(got - want) <= tolerance * std::abs(want);
}

std::string text(const std::optional<double>& x) { return x ? fmt::format("{:.17g}", *x) : "none"; }

std::string text(const std::optional<std::string>& x) { return x.value_or("none"); }

/// Relative tolerance of a coefficient: what the condition of the samples makes unavoidable.
double coefficient_tolerance(const FitCase& fit_case) {
  const auto fit = reference::fit_quadratic(fit_case.seq_lens, fit_case.latencies);
  const double condition = fit.quality ? fit.quality->condition : 1.0;
  return std::max(kPredictionTolerance, kCoefficientTolerance * condition);
}

/// Numbers that must agree where the expected one is there; false after the first that does not.
bool same_number(const char* number, const std::optional<double>& want,
                 const std::optional<double>& got, double tolerance, CaseResult& result) {
  if (!want || (got && close(*got, *want, tolerance))) return true;
  fail(result, "over_bound",
       fmt::format("{}: expected {} within {:.1e} relative, got {}", number, text(want), tolerance,
                   text(got)));
  return false;
}

using Quadratic = std::array<std::optional<double>, 3>;  // a, b, c

/// f in extended precision, so that the comparison adds no rounding of its own.
long double at(const Quadratic& f, std::int64_t length) {
  const auto l = static_cast<long double>(length);
  return (static_cast<long double>(*f[0]) * l + static_cast<long double>(*f[1])) * l +
         static_cast<long double>(*f[2]);
}

bool same_predictions(const FitCase& fit_case, const Quadratic& want, const Quadratic& got,
                      CaseResult& result) {
  const auto there = [](const Quadratic& f) { return f[0] && f[1] && f[2]; };
  if (!there(want) || !there(got)) return true;  // single coefficients are compared by themselves
  long double largest = 0;
  for (std::size_t i = 1; i < fit_case.seq_lens.size(); ++i) {  // the first sample is dropped
    largest = std::max(largest, std::abs(at(want, fit_case.seq_lens[i])));
  }
  for (std::size_t i = 1; i < fit_case.seq_lens.size(); ++i) {
    const std::int64_t length = fit_case.seq_lens[i];
    const long double error = std::abs(at(got, length) - at(want, length));
    if (error <= kPredictionTolerance * largest) continue;
    fail(result, "over_bound",
         fmt::format(
             "f({}) at sample {}: expected {:.17g}, got {:.17g}, beyond {:.1e} of the largest",
             length, i, static_cast<double>(at(want, length)), static_cast<double>(at(got, length)),
             kPredictionTolerance));
    return false;
  }
  return true;
}

bool same_quadratic(const FitCase& fit_case, const char* prefix, const Quadratic& want,
                    const Quadratic& got, double tolerance, CaseResult& result) {
  constexpr std::array kNames{"a", "b", "c"};
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!same_number((std::string(prefix) + kNames[i]).c_str(), want[i], got[i], tolerance, result))
      return false;
  }
  return same_predictions(fit_case, want, got, result);
}

}  // namespace

void judge_fit(const FitCase& fit_case, const Expected& expected, const FitAnswer& answer,
               CaseResult& result) {
  const FitExpected& want = expected.fit;
  if (expected.error != answer.error) {
    return fail(
        result, answer.error.value_or("accepted"),
        fmt::format("error: expected {}, got {}", text(expected.error), text(answer.error)));
  }
  result.code = answer.error.value_or("");
  const double tolerance = coefficient_tolerance(fit_case);
  if (!same_quadratic(fit_case, "raw_", {want.raw_a, want.raw_b, want.raw_c},
                      {answer.raw_a, answer.raw_b, answer.raw_c}, tolerance, result)) {
    return;
  }
  if (expected.error) return;
  if (!same_quadratic(fit_case, "", {want.a, want.b, want.c}, {answer.a, answer.b, answer.c},
                      tolerance, result))
    return;
  if (!same_number("target_latency", want.target_latency, answer.target_latency, tolerance, result))
    return;
  if (want.warning != answer.warning) {
    fail(result, "warning",
         fmt::format("warning: expected {}, got {}", text(want.warning), text(answer.warning)));
  }
}

void judge_predict(const Expected& expected, const PredictAnswer& answer, CaseResult& result) {
  const auto text_of = [](const PredictExpected& prediction) {
    return prediction.chunk_size ? std::to_string(*prediction.chunk_size)
                                 : "no answer (" + prediction.none.value_or("no reason") + ")";
  };
  if (expected.predict.chunk_size == answer.chunk_size && expected.predict.none == answer.none)
    return;
  fail(result, "wrong_prediction",
       "chunk_size: expected " + text_of(expected.predict) + ", got " + text_of(answer));
}

}  // namespace kda::harness
