#pragma once

#include "reference/types/problem.hpp"

#include <cstdint>
#include <vector>

namespace kda::reference {

/// Inputs of some tokens of one value head as the recurrence wants them: activated (steps 1 to 3 of
/// the order of operations), f64, dense and row-major. Buffers are reused by later reads.
struct ActivatedRows {
  std::vector<double> q;          ///< [count,K], normalised where asked for; without `scale`
  std::vector<double> k;          ///< [count,K], normalised where asked for
  std::vector<double> v;          ///< [count,V]
  std::vector<double> log_decay;  ///< [count,K], natural log
  std::vector<double> beta;       ///< [count]
};

/// Reads a problem head by head. Used by the chunked and the fast form; the token recurrence has
/// its own reader, so that one mistake cannot hide in all three. Keeps references to both
/// arguments; reading is safe from several threads.
class ActivatedReader {
 public:
  ActivatedReader(const Problem& problem, const Semantics& semantics);

  /// Tokens [first, first + count) of `sequence`, counted from its start.
  void read(const Sequence& sequence, std::int64_t hv, std::int64_t first, std::int64_t count,
            ActivatedRows& rows) const;

  /// State before the first token of sequence n, [K,V] row-major whatever the layout.
  [[nodiscard]] std::vector<double> initial_state(std::int64_t n, std::int64_t hv) const;

 private:
  void apply_gate(std::int64_t hv, std::vector<double>& log_decay) const;

  const Problem& problem_;
  const Semantics& semantics_;
  std::vector<double> A_log_;    ///< [HV], zeros when absent
  std::vector<double> dt_bias_;  ///< [HV,K], zeros when absent
};

/// Stores S [K,V] row-major, f64, into slot `i`, head `hv` of `states` in the state layout.
void store_state(const double* S, std::int64_t i, std::int64_t hv, const Semantics& semantics,
                 Tensor& states);

}  // namespace kda::reference
