#include "reference/variance_isa.hpp"
#include "reference/vector.hpp"

// What errors of log decays add up to over a block. Must not include the standard library (see
// vector.hpp).

namespace kda::reference::KDA_ISA {
namespace {

constexpr auto kKappa2 = static_cast<Real>(kKappa * kKappa);

Vec at(MatrixRef x, int i, int c) { return load(x.data + i * x.pitch + c); }
void put(Vec value, MatrixRef x, int i, int c) { store(value, x.data + i * x.pitch + c); }

/// Roundings of a prefix sum that are alike: on the coarse grid of a sum that has grown large, log
/// decays within a step of each other are rounded by the same error, or lost, token after token.
class PrefixSum {
 public:
  explicit PrefixSum(Real unit) : unit_(unit) {}

  /// Adds a log decay; the sum of such errors so far, in units of the gate's roundoff.
  Vec add(Vec log_decay) {
    Vec g = magnitude(log_decay);
    g = g < kFinite ? g : Vec{} + kLost;
    total_ += g;
    const Vec most = g / unit_ < total_ ? g / unit_ : total_;
    const auto alike = magnitude(g - before_) <= total_ * (unit_ * kStep);
    const auto coarse = (g > 0) & (g * kSmall < total_);
    alike_ += alike & coarse ? most : Vec{};
    before_ = g;
    return alike_;
  }

 private:
  // Limits lie off the numbers that exact inputs make, so that no rounding decides.
  static constexpr auto kStep = static_cast<Real>(1.9);
  static constexpr auto kSmall = static_cast<Real>(140);  ///< above the tokens of a block
  static constexpr auto kFinite = static_cast<Real>(1e30);
  static constexpr auto kLost = static_cast<Real>(1000);  ///< what a kernel may have for infinity

  Real unit_;
  Vec total_{};
  Vec before_{};
  Vec alike_{};
};

}  // namespace

void compute_gate_sums(const BoundBlock& block, Real unit, const GateSums& sums) {
  for (int c = 0; c < block.K; c += kLanes) {
    Vec gates{};
    Vec squares{};
    PrefixSum prefix(unit);
    for (int i = 0; i < block.tokens; ++i) {
      gates += at(block.gate_error, i, c);
      Vec linear = gates;
      if (block.prefix_sums) {
        squares += gates * gates * kKappa2;
        linear += prefix.add(at(block.log_decay, i, c));
      }
      put(linear, sums.linear, i, c);
      put(squares, sums.prefix, i, c);
      put(linear + root(squares), sums.phi, i, c);
    }
  }
}

void compute_gate_scores(const BoundBlock& block, MatrixRef decays, const GateSums& sums,
                         MatrixRef A, MatrixRef Q, Real* row) {
  for (int j = 0; j < block.tokens; ++j) {
    for (int c = 0; c < block.K; c += kLanes) store(at(block.k, j, c), row + c);
    A.data[j * A.pitch + j] = 0;
    Q.data[j * Q.pitch + j] = 0;
    for (int i = j + 1; i < block.tokens; ++i) {
      Vec a_sum{};
      Vec q_sum{};
      for (int c = 0; c < block.K; c += kLanes) {
        const Vec key = load(row + c) * at(decays, i, c);
        store(key, row + c);
        const Vec linear = at(sums.linear, i, c) - at(sums.linear, j, c);
        const Vec prefix = at(sums.prefix, i, c) - at(sums.prefix, j, c);
        const Vec error = linear * linear + prefix;
        const Vec a = key * at(block.k, i, c);
        const Vec b = key * at(block.q, i, c);
        a_sum += a * a * error;
        q_sum += b * b * error;
      }
      A.data[i * A.pitch + j] = sum(a_sum);
      Q.data[i * Q.pitch + j] = sum(q_sum);
    }
  }
}

}  // namespace kda::reference::KDA_ISA
