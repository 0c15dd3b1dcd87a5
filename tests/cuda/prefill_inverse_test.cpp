#include "reference/peer_factors.hpp"
#include "tests/cuda/prefill_call.hpp"
#include "tests/cuda/prefill_families.hpp"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// T = (I + diag(beta) A)^-1 diag(beta) of the prefill kernel, from its own A; and that the same
// bounds turn away the cheaper inverses, on emulations of them.

namespace kda::cuda {
namespace {

using reference::OperandFormat;
using reference::peer::Matrix;
using tests::KdaInputs;
using tests::Keys;
using tests::PrefillFamily;
using Exact = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kC = 64;

/// Largest error of the part below the diagonal of X = (I + L)^-1.
double inverse_error(const Matrix& X, const Exact& L) {
  const Exact one = Exact::Identity(L.rows(), L.cols());
  const Exact exact = (one + L).triangularView<Eigen::UnitLower>().solve(one);
  double worst = 0;
  for (Eigen::Index i = 0; i < L.rows(); ++i) {
    for (Eigen::Index j = 0; j < i; ++j) {
      const double error = std::abs(double{X(i, j)} - exact(i, j));
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

/// Of errors of X. Two bf16 parts keep 16 bits. For keys that differ, roundings do too: 5e-5, or
/// 2e-3 where the entries are about 2. Where all 64 keys are one and nothing decays, 32 equal terms
/// of size 4 round alike, 2^-17 for either factor, in both products of a merge: 4 * 32 * 2 * 2^-17
/// * 2.
double bound(double beta, bool all_alike = false) {
  if (beta < 1.5) return 5e-5;
  return all_alike ? 4 * 32 * 4 * 0x1p-17 : 2e-3;
}

struct Setting {
  Keys keys;
  double noise;
  double beta;
  double g;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const auto& [keys, noise] : {std::pair{Keys::kRandom, 0.0},
                                    {Keys::kNear, 0.01},
                                    {Keys::kIdentical, 0.0},
                                    {Keys::kAlternating, 0.0}}) {
    for (const double beta : {0.9, 0.99, 1.0, 2.0}) {
      for (const double g : {0.0, -1e-3, -0.05, -3.0}) all.push_back({keys, noise, beta, g});
    }
  }
  return all;
}

/// One head for every setting, one chunk.
KdaInputs inputs_of(const std::vector<Setting>& all) {
  const auto heads = static_cast<std::int64_t>(all.size());
  KdaInputs whole = prefill_inputs(kC, heads, 31);
  for (std::int64_t head = 0; head < heads; ++head) {
    const Setting& s = all[static_cast<std::size_t>(head)];
    const KdaInputs one = tests::make_family(
        {.name = "", .T = kC, .keys = s.keys, .noise = s.noise, .beta = s.beta}, 1);
    for (std::int64_t t = 0; t < kC; ++t) {
      const std::int64_t row = t * heads + head;
      for (std::int64_t c = 0; c < 128; ++c) {
        whole.k.store(row * 128 + c, load(one.k.view(), t * 128 + c));
        whole.g.store(row * 128 + c, s.g);
      }
      whole.beta.store(row, s.beta);
    }
  }
  return whole;
}

/// L = diag(beta) A of a head, from the kernel's own A.
Exact L_of(const PrefillTensors& stages, std::int64_t head, double beta) {
  Exact L = Exact::Zero(kC, kC);
  for (Eigen::Index i = 0; i < kC; ++i) {
    for (Eigen::Index j = 0; j < i; ++j) {
      // beta as bf16 or f32 holds it
      L(i, j) =
          double{static_cast<float>(beta)} * double{stages.A.as<float>()[(head * kC + i) * kC + j]};
    }
  }
  return L;
}

std::string text(const Setting& s) {
  return "keys " + std::to_string(static_cast<int>(s.keys)) + ", beta " + std::to_string(s.beta) +
         ", g " + std::to_string(s.g);
}

TEST(PrefillInverse, OfTheKernelOnEveryKindOfKeys) {
  const std::vector<Setting> all = settings();
  PrefillTensors stages;
  static_cast<void>(run_prefill_cpu(inputs_of(all).problem(), {}, {}, nullptr, &stages));
  for (std::size_t head = 0; head < all.size(); ++head) {
    const Setting& s = all[head];
    const auto h = static_cast<std::int64_t>(head);
    Matrix X(kC, kC);
    for (Eigen::Index i = 0; i < kC; ++i) {
      for (Eigen::Index j = 0; j < kC; ++j) {
        X(i, j) = stages.T.as<float>()[(h * kC + i) * kC + j] / static_cast<float>(s.beta);
      }
    }
    const bool alike = s.g == 0 && (s.keys == Keys::kIdentical || s.keys == Keys::kAlternating);
    EXPECT_LE(inverse_error(X, L_of(stages, h, s.beta)), bound(s.beta, alike)) << text(s);
  }
}

/// (I + L)^-1 of 16x16 blocks by (I - L)(I + L^2)(I + L^4)(I + L^8), operands in `format`; merged
/// as the kernel does.
Matrix neumann(const Matrix& L, OperandFormat format) {
  using reference::peer::product;
  using reference::peer::round_to;
  const auto times = [&](const Matrix& a, const Matrix& b) {
    return product(round_to(format, a), round_to(format, b));
  };
  const Eigen::Index size = L.rows();
  const Matrix one = Matrix::Identity(size, size);
  if (size == 16) {
    Matrix X = one - L;
    Matrix power = times(L, L);
    for (int i = 0; i < 3; ++i) {
      X = times(X, one + power);
      power = times(power, power);
    }
    return X;
  }
  const Eigen::Index half = size / 2;
  const auto split = [](const Matrix& x) { return round_to(OperandFormat::kBf16Split, x); };
  Matrix X = Matrix::Zero(size, size);
  X.topLeftCorner(half, half) = neumann(L.topLeftCorner(half, half), format);
  X.bottomRightCorner(half, half) = neumann(L.bottomRightCorner(half, half), format);
  const Matrix inner =
      product(split(X.bottomRightCorner(half, half)), split(L.bottomLeftCorner(half, half)));
  X.bottomLeftCorner(half, half) = -product(split(inner), split(X.topLeftCorner(half, half)));
  return X;
}

/// L of identical keys with a slow gate: what cheap inverses fail on.
Exact collinear_L(double beta) {
  Exact L = Exact::Zero(kC, kC);
  for (Eigen::Index i = 0; i < kC; ++i) {
    for (Eigen::Index j = 0; j < i; ++j) {
      L(i, j) = beta * 0.9987 * std::exp(-1e-3 * static_cast<double>(i - j));
    }
  }
  return L;
}

TEST(PrefillInverse, CheaperOnesMustFail) {
  for (const double beta : {0.9, 0.99, 2.0}) {
    const Matrix L = collinear_L(beta).cast<float>();
    const Exact exact = L.cast<double>();
    const auto error = [&](const Matrix& X) { return inverse_error(X, exact); };
    using reference::peer::inverse;
    EXPECT_LE(error(inverse(L, OperandFormat::kF32)), bound(beta)) << beta;
    EXPECT_LE(error(inverse(L, OperandFormat::kBf16Split)), bound(beta)) << beta;
    const double widest = bound(beta, true);
    for (const Matrix& X : {inverse(L, OperandFormat::kTf32), inverse(L, OperandFormat::kBf16),
                            neumann(L, OperandFormat::kF16), neumann(L, OperandFormat::kF32)}) {
      EXPECT_FALSE(error(X) <= 2 * widest) << beta;  // NaN counts as an error
    }
  }
}

}  // namespace
}  // namespace kda::cuda
