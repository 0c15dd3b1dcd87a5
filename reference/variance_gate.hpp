#pragma once

#include "reference/types/problem.hpp"

#include <cstdint>
#include <vector>

namespace kda::reference {

/// How far a kernel's log decay may be off, in units of the unit roundoff that its gates are
/// computed with (docs/bound.md, gate error). Keeps references to problem and semantics.
class GateError {
 public:
  /// `unit` is that roundoff. `one_sided`: the errors of all exponentials may have one sign, not of
  /// repeated ones alone.
  GateError(const Problem& problem, const Semantics& semantics, double unit, bool one_sided);

  /// For `count` tokens from `first` on (counted from the start of the sequence) of value head hv:
  /// `error` [count,K], from their activated `log_decay` [count,K] and that of the token before
  /// them, `before` [K], which is empty for the first token.
  void read(const Sequence& sequence, std::int64_t hv, std::int64_t first, std::int64_t count,
            const std::vector<double>& log_decay, const std::vector<double>& before,
            std::vector<double>& error) const;

 private:
  /// Of one gate by itself, from its stored value.
  [[nodiscard]] double of_activation(double raw, double log_decay, std::int64_t hv,
                                     std::size_t channel) const;

  const Problem& problem_;
  const Semantics& semantics_;
  double unit_;
  bool one_sided_;
  std::vector<double> A_log_;    ///< [HV], empty = 0
  std::vector<double> dt_bias_;  ///< [HV,K], empty = 0
};

}  // namespace kda::reference
