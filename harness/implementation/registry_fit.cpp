#include "harness/implementation/registry_fit.hpp"

#include "reference/fit_svd.hpp"
#include "reference/predictor.hpp"

namespace kda::harness {
namespace {

using reference::Coefficients;

PredictAnswer answer_predict(const PredictCase& query) {
  std::optional<Coefficients> f;
  if (query.a && query.b) f = Coefficients{*query.a, *query.b, query.c.value_or(0.0)};
  std::optional<double> target = query.target_latency;
  if (f && !target && !query.no_target) {
    const reference::TargetLatency derived = target_latency(*f, query.base_chunk_size);
    if (!derived.error) target = derived.value;
  }
  if (query.no_target) target.reset();
  const auto prediction = predict_chunk(f, target,
                                        {.history_len = query.history_len,
                                         .base_chunk_size = query.base_chunk_size,
                                         .page_size = query.page_size,
                                         .context_len = query.context_len,
                                         .max_chunk_size = query.max_chunk_size,
                                         .smooth_factor = query.smooth_factor});
  PredictAnswer answer{.chunk_size = prediction.chunk_size, .none = {}};
  if (prediction.none) answer.none = name(*prediction.none);
  return answer;
}

template <class Fit>
Answer answer_with(const Case& test_case, Fit fit) {
  if (const auto* query = std::get_if<PredictCase>(&test_case.inputs))
    return answer_predict(*query);
  const auto& fit_case = std::get<FitCase>(test_case.inputs);
  return answer_fit(fit_case, fit(fit_case.seq_lens, fit_case.latencies));
}

}  // namespace

FitAnswer answer_fit(const FitCase& fit_case, const reference::FitResult& fit) {
  FitAnswer answer;
  if (fit.raw) {
    answer.raw_a = fit.raw->a;
    answer.raw_b = fit.raw->b;
    answer.raw_c = fit.raw->c;
  }
  if (fit.error) {
    answer.error = name(*fit.error);
    return answer;
  }
  answer.a = fit.corrected->a;
  answer.b = fit.corrected->b;
  answer.c = fit.corrected->c;
  for (const reference::FitWarning& warning : fit.warnings) answer.warning = name(warning.code);
  if (fit_case.base_chunk_size) {
    const reference::TargetLatency target =
        target_latency(*fit.corrected, *fit_case.base_chunk_size);
    if (target.error) {
      answer.error = name(*target.error);
    } else {
      answer.target_latency = target.value;
    }
  }
  return answer;
}

Answer answer_by_qr(const Case& test_case) {
  return answer_with(test_case, reference::fit_quadratic);
}

Answer answer_by_svd(const Case& test_case) {
  return answer_with(test_case, reference::fit_quadratic_svd);
}

}  // namespace kda::harness
