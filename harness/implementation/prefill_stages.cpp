#include "harness/implementation/prefill_stages.hpp"

#include "reference/activated.hpp"
#include "reference/chunked.hpp"
#include "reference/types/contract.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using reference::Stages;

constexpr std::int64_t kC = cuda::kPrefillChunk;
constexpr std::int64_t kK = cuda::kPrefillDim;
constexpr std::int64_t kState = kK * kK;
/// Beyond it the stages take a gigabyte.
constexpr std::int64_t kMostChunks = 4096;

// What 16-bit operands explain, with room: the aim is the stage that is plainly wrong.
constexpr double kGateShare = 1e-4;   ///< of a sum of log decays
constexpr double kScoreShare = 2e-2;  ///< of |q_i| |k_j|
constexpr double kShare = 5e-2;       ///< of the largest element

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Element (i, j) of a stage, both values.
struct Mismatch {
  std::int64_t i;
  std::int64_t j;
  double got;
  double want;
};

bool close(double got, double want, double bound) {
  if (got == want) return true;  // also infinities
  return std::abs(got - want) <= bound;
}

/// `rows` x `columns` elements of got (rows `stride` apart) and want; bound(i, j) of the
/// difference.
template <class Want, class Bound>
std::optional<Mismatch> differing(const float* got, std::int64_t stride, std::int64_t rows,
                                  std::int64_t columns, Want want, Bound bound) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto x = double{got[i * stride + j]};
      const double y = want(i, j);
      if (!close(x, y, bound(i, j))) return Mismatch{i, j, x, y};
    }
  }
  return std::nullopt;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

std::vector<double> norms(const std::vector<double>& rows, std::int64_t count) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < kK; ++k) sum += rows[index(i * kK + k)] * rows[index(i * kK + k)];
    all.push_back(std::sqrt(sum));
  }
  return all;
}

/// Looks at one chunk after another; remembers the first that is wrong.
class StageSearch {
 public:
  StageSearch(const Problem& problem, const Semantics& semantics, const cuda::PrefillTensors& got,
              const Outputs& outputs)
      : reader_(problem, semantics), s_(semantics), got_(got), outputs_(outputs) {}

  void look(const Stages& want) {
    if (found_) return;
    const Sequence& sequence = s_.sequences[index(want.n)];
    const std::int64_t chunk = sequence.first_chunk + want.begin / kC;
    const std::int64_t slot = chunk * s_.HV + want.hv;
    reader_.read(sequence, want.hv, want.begin, want.tokens, rows_);
    using Check = std::optional<Mismatch> (StageSearch::*)(const Stages&, std::int64_t) const;
    constexpr std::pair<const char*, Check> kChecks[] = {
        {"the state before the chunk (k, v)", &StageSearch::state},
        {"the sum of log decays (token, channel)", &StageSearch::gate},
        {"A (token, token)", &StageSearch::A},
        {"Q (token, token)", &StageSearch::Q},
        {"T (token, token)", &StageSearch::T},
        {"U (token, v)", &StageSearch::U},
    };
    for (const auto& [name, check] : kChecks) {
      const auto wrong = (this->*check)(want, slot);
      if (!wrong) continue;
      found_ = fmt::format(
          "first wrong stage: {} of sequence {}, value head {}, tokens {} to {}: element ({}, {}) "
          "is {:.6g}, wanted {:.6g}",
          name, want.n, want.hv, want.begin, want.begin + want.tokens - 1, wrong->i, wrong->j,
          wrong->got, wrong->want);
      return;
    }
  }

  [[nodiscard]] std::optional<std::string> found() const { return found_; }

 private:
  [[nodiscard]] std::optional<Mismatch> state(const Stages& want, std::int64_t slot) const {
    const auto* S = want.state.as<double>();
    const double bound = kShare * largest({S, S + kState});
    const auto* got = outputs_.h->as<float>() + slot * kState;
    const bool k_first = s_.state_layout == StateLayout::kKV;
    // The initial state is copied, not computed.
    const double slack = want.begin == 0 ? 0 : bound;
    return differing(
        got, kK, kK, kK, [&](auto a, auto b) { return k_first ? S[a * kK + b] : S[b * kK + a]; },
        [&](auto, auto) { return slack; });
  }

  [[nodiscard]] std::optional<Mismatch> gate(const Stages& want, std::int64_t slot) const {
    std::vector<float> sums(index(want.tokens * kK));
    for (std::int64_t k = 0; k < kK; ++k) {
      double sum = 0;
      for (std::int64_t i = 0; i < want.tokens; ++i) {
        sum += double{got_.log_decay.as<float>()[(slot * kC + i) * kK + k]};
        sums[index(i * kK + k)] = static_cast<float>(sum);
      }
    }
    const auto exact = [&](auto i, auto k) { return want.gate_cumsum.as<double>()[i * kK + k]; };
    return differing(sums.data(), kK, want.tokens, kK, exact, [&](auto i, auto k) {
      // Far below the range of exp nothing depends on it.
      const double size = std::abs(exact(i, k));
      return size > 1e30 ? HUGE_VAL : kGateShare * size + 1e-30;
    });
  }

  [[nodiscard]] std::optional<Mismatch> A(const Stages& want, std::int64_t slot) const {
    return scores(got_.A, want.A, rows_.k, want.tokens, slot);
  }
  [[nodiscard]] std::optional<Mismatch> Q(const Stages& want, std::int64_t slot) const {
    return scores(got_.Q, want.Q, rows_.q, want.tokens, slot);
  }
  [[nodiscard]] std::optional<Mismatch> scores(const Tensor& got, const Tensor& want,
                                               const std::vector<double>& left, std::int64_t C,
                                               std::int64_t slot) const {
    const std::vector<double> of_i = norms(left, C);
    const std::vector<double> of_j = norms(rows_.k, C);
    return differing(
        got.as<float>() + slot * kC * kC, kC, C, C,
        [&](auto i, auto j) { return want.as<double>()[i * C + j]; },
        [&](auto i, auto j) { return kScoreShare * of_i[index(i)] * of_j[index(j)] + 1e-30; });
  }

  /// Against the exact inverse of the kernel's own A: on keys that nearly coincide an error of A
  /// grows beyond any bound.
  [[nodiscard]] std::optional<Mismatch> T(const Stages& want, std::int64_t slot) const {
    const std::int64_t C = want.tokens;
    const auto* A = got_.A.as<float>() + slot * kC * kC;
    std::vector<double> X(index(C * C), 0.0);
    for (std::int64_t i = 0; i < C; ++i) {
      X[index(i * C + i)] = 1;
      for (std::int64_t m = 0; m < i; ++m) {
        const double L = rows_.beta[index(i)] * double{A[i * kC + m]};
        for (std::int64_t j = 0; j <= m; ++j) X[index(i * C + j)] -= L * X[index(m * C + j)];
      }
    }
    for (std::int64_t i = 0; i < C; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) X[index(i * C + j)] *= rows_.beta[index(j)];
    }
    const double bound = kShare * largest(X);
    return differing(
        got_.T.as<float>() + slot * kC * kC, kC, C, C,
        [&](auto i, auto j) { return X[index(i * C + j)]; }, [&](auto, auto) { return bound; });
  }

  /// U = T v - W S.
  [[nodiscard]] std::optional<Mismatch> U(const Stages& want, std::int64_t slot) const {
    std::vector<double> U(want.U.as<double>(), want.U.as<double>() + want.U.size());
    for (std::int64_t i = 0; i < want.tokens; ++i) {
      for (std::int64_t k = 0; k < kK; ++k) {
        const double w = want.W.as<double>()[i * kK + k];
        for (std::int64_t v = 0; v < kK; ++v) {
          U[index(i * kK + v)] -= w * want.state.as<double>()[k * kK + v];
        }
      }
    }
    const double bound = kShare * largest(U);
    return differing(
        got_.U.as<float>() + slot * kC * kK, kK, want.tokens, kK,
        [&](auto i, auto v) { return U[index(i * kK + v)]; }, [&](auto, auto) { return bound; });
  }

  reference::ActivatedReader reader_;
  const Semantics& s_;
  const cuda::PrefillTensors& got_;
  const Outputs& outputs_;
  reference::ActivatedRows rows_;
  std::optional<std::string> found_;
};

}  // namespace

std::optional<std::string> first_wrong_stage(const Problem& problem, const Semantics& semantics,
                                             const cuda::PrefillTensors& stages,
                                             const Outputs& outputs) {
  StageSearch search(problem, semantics, stages, outputs);
  static_cast<void>(
      reference::chunked(problem, semantics, [&](const Stages& want) { search.look(want); }));
  return search.found();
}

std::string diagnose_prefill(const Case& test_case, cuda::PrefillPolicy policy) {
  Problem problem = std::get<KdaCase>(test_case.inputs).problem();
  problem.return_intermediate_states = true;
  try {
    const Semantics semantics = check(Contract::kKdaPrefill, problem);
    if (semantics.num_chunks * semantics.HV > kMostChunks)
      return "stages: the case is too large to look into";
    cuda::PrefillTensors stages;
    const Outputs outputs =
        cuda::run_prefill_cpu(problem, {.policy = policy}, {}, nullptr, &stages);
    return first_wrong_stage(problem, semantics, stages, outputs)
        .value_or(
            "stages: every one is as it should be; what follows them (o, final_state) is not");
  } catch (const std::exception& error) {
    return std::string("stages: the run for them failed: ") + error.what();
  }
}

}  // namespace kda::harness
