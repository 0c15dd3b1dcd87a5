#include "harness/mutate/activated.hpp"

#include "reference/activated.hpp"

#include <algorithm>

namespace kda::harness::mutate {

Activated activate(const Call& call) {
  const Semantics& s = call.semantics;
  const Problem problem = call.inputs.problem();
  const reference::ActivatedReader reader(problem, s);
  Activated a{.semantics = s,
              .operands = problem.q.dtype,
              .rows = s.B * s.T,
              .spans = {},
              .q = {},
              .k = {},
              .g = {},
              .v = {},
              .beta = {},
              .state = {}};
  const auto heads = static_cast<std::size_t>(a.rows * s.HV);
  const auto K = static_cast<std::size_t>(s.K);
  const auto V = static_cast<std::size_t>(s.V);
  a.q.resize(heads * K);
  a.k.resize(heads * K);
  a.g.resize(heads * K);
  a.v.resize(heads * V);
  a.beta.resize(heads);
  reference::ActivatedRows rows;
  for (std::int64_t n = 0; n < s.N(); ++n) {
    const Sequence& sequence = s.sequences[static_cast<std::size_t>(n)];
    const std::int64_t first = sequence.b * s.T + sequence.begin;
    a.spans.push_back({first, first + sequence.length(), sequence.first_chunk});
    for (std::int64_t hv = 0; hv < s.HV; ++hv) {
      const auto S = reader.initial_state(n, hv);
      a.state.insert(a.state.end(), S.begin(), S.end());
      reader.read(sequence, hv, 0, sequence.length(), rows);
      for (std::int64_t t = 0; t < sequence.length(); ++t) {
        const auto i = static_cast<std::int64_t>(K) * t;
        const auto to = static_cast<std::ptrdiff_t>(a.at_k(first + t, hv));
        std::copy_n(rows.q.begin() + i, K, a.q.begin() + to);
        std::copy_n(rows.k.begin() + i, K, a.k.begin() + to);
        std::copy_n(rows.log_decay.begin() + i, K, a.g.begin() + to);
        std::copy_n(rows.v.begin() + s.V * t, V,
                    a.v.begin() + static_cast<std::ptrdiff_t>(a.at_v(first + t, hv)));
        a.beta[a.at(first + t, hv)] = rows.beta[static_cast<std::size_t>(t)];
      }
    }
  }
  return a;
}

Outputs empty_outputs(const Activated& a, Precision precision) {
  const bool f64 = precision == Precision::kF64;
  const Semantics& s = a.semantics;
  Outputs out;
  out.o = Tensor(f64 ? Dtype::kF64 : a.operands, s.o_shape());
  const Dtype state = f64 ? Dtype::kF64 : Dtype::kF32;
  if (s.final_state) out.final_state = Tensor(state, s.state_shape(s.N()));
  if (s.chunk_states) out.h = Tensor(state, s.state_shape(s.num_chunks));
  return out;
}

double rounded(Dtype dtype, double x) {
  switch (dtype) {
    case Dtype::kBf16: return to_float(to_bf16(x));
    case Dtype::kF16: return to_float(to_f16(x));
    case Dtype::kF32: return static_cast<float>(x);
    default: return x;
  }
}

}  // namespace kda::harness::mutate
