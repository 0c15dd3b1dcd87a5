#pragma once

#include "harness/implementation/implementation.hpp"
#include "reference/fit.hpp"

namespace kda::harness {

/// Answers to fit and predict cases: coefficients by Householder QR, or by the second method, SVD.
/// Predictions have one method; both give the same.
[[nodiscard]] Answer answer_by_qr(const Case& test_case);
[[nodiscard]] Answer answer_by_svd(const Case& test_case);

/// What a fit says, and the target latency where the case wants one, in the words of an answer.
[[nodiscard]] FitAnswer answer_fit(const FitCase& fit_case, const reference::FitResult& fit);

}  // namespace kda::harness
