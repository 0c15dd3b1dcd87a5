#pragma once

#include "harness/case/case.hpp"
#include "harness/case/case_line.hpp"

namespace kda::harness {

/// Inputs of a case line, rounded once to their storage dtypes:
///   q, k [B,T,H,K], v [B,T,HV,V]             `dtype`; rows of q and k have length 1, unless
///                                            `l2norm`: then about sqrt(K)
///   g [B,T,HV,K], beta [B,T,HV]              `g_dtype`, `beta_dtype`
///   A_log [HV], dt_bias [HV,K]               f32, with a gate in the kernel
///   initial_state [N,HV,K,V] or [N,HV,V,K]   f32, with `initial_state`
///   cu_seqlens [N+1]                         i64, with `lens`
/// Rows of q, k, v, g and beta that belong to no sequence are NaN: nobody may read them.
///
/// Every number depends on the seed, its tensor and its indices (b, t, head, channel) only, so a
/// shorter, narrower or otherwise typed case holds the same numbers, rounded; states too have the
/// same numbers in either layout. Fills on all cores.
[[nodiscard]] KdaCase fill(const CaseLine& line);

}  // namespace kda::harness
