#pragma once

#include "reference/activated.hpp"
#include "reference/variance.hpp"
#include "reference/variance_gate.hpp"
#include "reference/variance_kernel.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kda::reference {

/// The kernels of one instruction set.
struct VarianceKernels {
  const VarianceKernel& wide;    ///< f64
  const VarianceKernel& narrow;  ///< f32
};

/// Runs the variance bound of one head after another over a whole sequence. One object per thread;
/// buffers are reused. Keeps references to all arguments.
class VarianceHead {
 public:
  VarianceHead(const Problem& problem, const Semantics& semantics, const Formats& formats,
               const VarianceKernels& kernels);

  [[nodiscard]] HeadDeviation run(std::int64_t n, std::int64_t hv);

 private:
  /// A zero-filled matrix of which rows begin on a cache line and columns are padded to whole
  /// vectors.
  class Buffer {
   public:
    Buffer(std::int64_t rows, std::int64_t columns);
    [[nodiscard]] MatrixRef matrix();
    /// Dense rows of `columns` as a matrix: as they lie, or copied into the buffer where they have
    /// no whole vectors.
    [[nodiscard]] MatrixRef of_rows(std::vector<double>& values, std::int64_t columns);

   private:
    struct alignas(64) Line {
      double x[8];
    };
    std::vector<Line> lines_;
    std::int64_t lines_per_row_;
  };

  static Buffer state_buffer(const Semantics& semantics);
  void start(std::int64_t n, std::int64_t hv);
  void advance(const Sequence& sequence, std::int64_t hv, std::int64_t first, std::int64_t count,
               HeadDeviation& result);
  void set_underflow(const Formats& formats);
  void watch_repeats(const Formats& formats);
  void make_room_for_echoes();
  void run_kernel();
  /// S, P and Gamma from the narrow kernel, where only that has them.
  void fetch_state();
  /// sqrt(P + Gamma^2), [K,V] dense.
  void store_state(double* sigma);

  const Semantics& semantics_;
  const VarianceKernels& kernels_;
  ActivatedReader reader_;
  GateError gate_error_;
  BoundFactors factors_;
  std::int64_t block_;  ///< tokens
  bool narrow_;         ///< the formats are so coarse that f32 is next to exact beside them
  BoundBlock inputs_{};
  ActivatedRows rows_;
  std::vector<double> gate_rows_;  ///< [count,K]
  std::vector<double> before_;     ///< [K] log decay of the token before the block
  std::vector<int> repeated_;
  std::vector<std::uint64_t> tokens_;  ///< one number for k, beta and log decay of each token
  Buffer q_, k_, v_, log_decay_, errors_, o_, sigma_o_, underflow_;
  std::array<Buffer, 6> states_;  ///< S, P, Gamma of inputs_, then those of the next block
  std::array<EchoesOf<double>, 2> echoes_{};
  int echo_sizes_ = 1;                      ///< block sizes for which they are carried
  std::unique_ptr<double[]> echo_numbers_;  ///< their matrices, once they are wanted
  struct alignas(64) ScratchLine {
    std::byte x[64];
  };
  std::vector<ScratchLine> scratch_;
  bool in_narrow_ = false;  ///< the narrow kernel has the state too, in scratch_
  bool stale_ = false;      ///< only the narrow kernel has it
};

}  // namespace kda::reference
