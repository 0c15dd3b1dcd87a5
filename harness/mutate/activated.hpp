#pragma once

#include "harness/case/case.hpp"

#include <cstdint>
#include <vector>

// What the faulty kernels of the mutation catalogue work on.

namespace kda::harness::mutate {

/// A call as a kernel reads it: the stored inputs and what they mean. Faults of reading change
/// either.
struct Call {
  KdaCase inputs;
  Semantics semantics;
};

/// Consecutive rows of one sequence. Row = b T + t.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first_chunk = 0;  ///< its first row in `h`

  [[nodiscard]] std::int64_t length() const { return end - begin; }
};

/// The inputs after the activations, f64, dense, with a query and key of its own for every value
/// head. Faults of the activations change the values.
struct Activated {
  Semantics semantics;
  Dtype operands = Dtype::kF32;  ///< of q, k, v as stored
  std::int64_t rows = 0;         ///< B T
  std::vector<Span> spans;       ///< [N]
  std::vector<double> q;         ///< [rows,HV,K], without scale
  std::vector<double> k;         ///< [rows,HV,K]
  std::vector<double> g;         ///< [rows,HV,K], log decay
  std::vector<double> v;         ///< [rows,HV,V]
  std::vector<double> beta;      ///< [rows,HV]
  std::vector<double> state;     ///< [N,HV,K,V] before the first token, whatever the layout

  [[nodiscard]] std::size_t at(std::int64_t row, std::int64_t hv) const {
    return static_cast<std::size_t>(row * semantics.HV + hv);
  }
  [[nodiscard]] std::size_t at_k(std::int64_t row, std::int64_t hv) const {
    return at(row, hv) * static_cast<std::size_t>(semantics.K);
  }
  [[nodiscard]] std::size_t at_v(std::int64_t row, std::int64_t hv) const {
    return at(row, hv) * static_cast<std::size_t>(semantics.V);
  }
  [[nodiscard]] std::size_t at_state(std::int64_t n, std::int64_t hv) const {
    return static_cast<std::size_t>((n * semantics.HV + hv) * semantics.K * semantics.V);
  }
};

/// In what numbers a faulty kernel computes.
enum class Precision : std::uint8_t {
  kF64,      ///< all of it, results too: what the fault alone does
  kWorking,  ///< as a kernel would: f32 sums, o in the dtype of v, f32 states
};

/// Rows that belong to no sequence stay 0 and are not read: they may hold NaN.
[[nodiscard]] Activated activate(const Call& call);

/// Outputs of the shapes that the semantics ask for, all 0.
[[nodiscard]] Outputs empty_outputs(const Activated& a, Precision precision);

/// S [K,V] row-major into slot `i` of [count,HV,K,V] or [count,HV,V,K].
template <class Real>
void put_state(Tensor& states, std::int64_t i, std::int64_t hv, const Semantics& s,
               const std::vector<Real>& S) {
  const std::int64_t base = (i * s.HV + hv) * s.K * s.V;
  for (std::int64_t k = 0; k < s.K; ++k) {
    for (std::int64_t v = 0; v < s.V; ++v) {
      const bool key_first = s.state_layout == StateLayout::kKV;
      states.store(base + (key_first ? k * s.V + v : v * s.K + k),
                   static_cast<double>(S[static_cast<std::size_t>(k * s.V + v)]));
    }
  }
}

/// Rounded to the nearest value of a format.
[[nodiscard]] double rounded(Dtype dtype, double x);

}  // namespace kda::harness::mutate
