#pragma once

#include "reference/activated.hpp"
#include "reference/variance.hpp"
#include "reference/variance_gate.hpp"
#include "reference/variance_kernel.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kda::reference {

/// Runs the variance bound of one head after another over a whole sequence. One object per thread;
/// buffers are reused. Keeps references to all arguments.
class VarianceHead {
 public:
  VarianceHead(const Problem& problem, const Semantics& semantics, const Formats& formats,
               const VarianceKernel& kernel);

  [[nodiscard]] HeadDeviation run(std::int64_t n, std::int64_t hv);

 private:
  /// A zero-filled matrix of which rows begin on a cache line and columns are padded to whole
  /// vectors.
  class Buffer {
   public:
    Buffer(std::int64_t rows, std::int64_t columns);
    [[nodiscard]] MatrixRef matrix();
    void fill(double value);
    /// Dense rows of `columns` into the first rows of the buffer.
    void set_rows(std::span<const double> values, std::int64_t columns);
    [[nodiscard]] const double* row(std::int64_t i) const;

   private:
    struct alignas(64) Line {
      double x[8];
    };
    std::vector<Line> lines_;
    std::int64_t lines_per_row_;
  };

  void start(std::int64_t n, std::int64_t hv);
  void advance(const Sequence& sequence, std::int64_t hv, std::int64_t first, std::int64_t count,
               HeadDeviation& result);
  /// sqrt(P + Gamma^2), [K,V] dense.
  void store_state(double* sigma) const;

  const Semantics& semantics_;
  const VarianceKernel& kernel_;
  ActivatedReader reader_;
  GateError gate_error_;
  BoundFactors factors_;
  std::int64_t block_;  ///< tokens
  BoundBlock inputs_{};
  ActivatedRows rows_;
  std::vector<double> gate_rows_;  ///< [count,K]
  std::vector<double> before_;     ///< [K] log decay of the token before the block
  std::vector<int> repeated_;
  std::vector<std::uint64_t> tokens_;  ///< one number for k, beta and log decay of each token
  Buffer q_, k_, v_, log_decay_, errors_, o_, sigma_o_, S_, P_, Gamma_, scratch_;
};

}  // namespace kda::reference
