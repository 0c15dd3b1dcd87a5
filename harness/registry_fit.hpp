#pragma once

#include "harness/implementation.hpp"

namespace kda::harness {

/// Answers to fit and predict cases: coefficients by Householder QR, or by the second method, SVD.
/// Predictions have one method; both give the same.
[[nodiscard]] Answer answer_by_qr(const Case& test_case);
[[nodiscard]] Answer answer_by_svd(const Case& test_case);

}  // namespace kda::harness
