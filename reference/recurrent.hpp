#pragma once

#include "reference/types/problem.hpp"

namespace kda::reference {

/// Kimi Delta Attention, forward, token by token: the definition that everything else is judged
/// against (Kimi Linear report, arXiv 2510.26692, equation 1).
///
///   S <- diag(exp(g_t)) S;  u = k_t^T S;  S <- S + beta_t k_t (v_t - u)^T;  o_t = scale q_t^T S
///
/// per sequence and value head, S of shape [K,V]. Every step is done in f64 on the stored inputs
/// and nothing is reordered. Returns o [B,T,HV,V] and, where `semantics` asks for them,
/// final_state [N,HV,K,V] and h [NT,HV,K,V] (the state before each chunk) in the state layout, all
/// f64. Rows of o that belong to no sequence are 0 and their inputs are never read.
/// `semantics` must come from `check` on this `problem`. Throws nothing but std::bad_alloc.
[[nodiscard]] Outputs recurrent(const Problem& problem, const Semantics& semantics);

/// The same loops in f32, as a careful kernel would run them: o rounded once to the dtype of v,
/// states f32. A peer to be judged, not a reference.
[[nodiscard]] Outputs recurrent_f32(const Problem& problem, const Semantics& semantics);

/// The same loops in long double, outputs rounded once to f64: checks `recurrent` on small cases.
[[nodiscard]] Outputs recurrent_long_double(const Problem& problem, const Semantics& semantics);

}  // namespace kda::reference
