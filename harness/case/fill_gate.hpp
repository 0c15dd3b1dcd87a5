#pragma once

#include "harness/case/case_line.hpp"
#include "harness/case/counter_rng.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kda::harness {

/// The gate tensor of a case line: log decays, or raw values where the kernel makes the gate.
class GateFill {
 public:
  /// `line` must outlive this.
  explicit GateFill(const CaseLine& line);

  /// One row of g, [K]. A pad row decays by exactly 1.
  void row(std::int64_t b, std::int64_t t, std::int64_t head, bool pad,
           std::span<double> out) const;

 private:
  [[nodiscard]] double log_decay(std::int64_t b, std::int64_t t, std::int64_t head,
                                 std::int64_t k) const;
  [[nodiscard]] double raw(std::int64_t b, std::int64_t t, std::int64_t head, std::int64_t k) const;
  [[nodiscard]] bool reset(std::int64_t b, std::int64_t t, std::int64_t head) const;

  const CaseLine& line_;
  CounterRng rng_;
  CounterRng resets_;
  std::vector<double> slowest_;  ///< [HV,K], of the decays that differ by channel
};

/// One element of beta: the probability itself, or its logit with `beta_sigmoid`.
[[nodiscard]] double beta_value(const CaseLine& line, bool pad, const CounterRng& rng,
                                std::int64_t b, std::int64_t t, std::int64_t head);

/// A_log [HV] and dt_bias [HV,K], f32.
[[nodiscard]] Tensor make_a_log(const CaseLine& line);
[[nodiscard]] Tensor make_dt_bias(const CaseLine& line);

}  // namespace kda::harness
