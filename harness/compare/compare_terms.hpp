#pragma once

#include "reference/activated.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <vector>

namespace kda::harness {

/// Sizes of the terms that outputs and states of a case add up, from its inputs alone. A sum may
/// cancel; the rounding errors of its terms do not, so that a bound needs both sizes.
class CaseTerms {
 public:
  /// Keeps references to both arguments.
  CaseTerms(const Problem& problem, const Semantics& semantics);

  /// [length,V] of sequence n and head hv: what a token reads of the writes around it, if q and k
  /// meet at random (q . k about |q| |k| / sqrt(K)), and in the first chunk also what it reads of
  /// the initial state, all terms squared and added.
  [[nodiscard]] std::vector<double> output(std::int64_t n, std::int64_t hv);

  /// [K,V], the state after chunk `chunk` of the sequence: a typical write of that chunk.
  [[nodiscard]] std::vector<double> state(std::int64_t n, std::int64_t hv, std::int64_t chunk);

  /// How much tokens of a chunk overlap: mean over i of sum over j < i of
  /// (beta_i k_i . (k_j decayed to i))^2, the largest of all chunks of a sequence. That is the
  /// squared row of the matrix that a chunk kernel inverts; what it reads through it returns
  /// amplified.
  [[nodiscard]] double overlap(std::int64_t n, std::int64_t hv);

  /// [length]: the same of the tokens up to each one, which is all that its output can suffer from:
  /// a first token overlaps with nothing.
  [[nodiscard]] std::vector<double> overlap_so_far(std::int64_t n, std::int64_t hv);

 private:
  /// RMS over the tokens of a chunk, and their overlap.
  struct ChunkSize {
    std::vector<double> key;      ///< beta k, [K]
    std::vector<double> value;    ///< v, [V]
    std::vector<double> overlap;  ///< by token, the sum over the tokens before it
  };
  [[nodiscard]] const std::vector<ChunkSize>& chunks(std::int64_t n, std::int64_t hv);
  [[nodiscard]] ChunkSize measure(const reference::ActivatedRows& rows, std::int64_t count) const;
  void add_initial_state(std::int64_t n, std::int64_t hv, const reference::ActivatedRows& rows,
                         std::int64_t count, std::vector<double>& squares) const;

  const Problem& problem_;
  const Semantics& semantics_;
  reference::ActivatedReader reader_;
  std::vector<std::vector<ChunkSize>> cache_;  ///< by n * HV + hv, filled when asked for
};

}  // namespace kda::harness
