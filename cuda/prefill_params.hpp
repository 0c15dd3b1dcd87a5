#pragma once

#include "cuda/device/pointers.hpp"
#include "reference/types/dtype.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>

// What the two prefill kernels are given. Plain data, the same for host, CPU kernel and GPU kernel.

namespace kda::cuda {

/// [B,T,H,128] with dense rows that start at multiples of 16 bytes; strides in elements.
template <class Byte>
struct RowTensor {
  device::Global<Byte> data;
  std::int64_t b;
  std::int64_t t;
  std::int64_t h;
};

/// `rows` tokens (1 ... 64) of batch row `b` from `begin` on.
struct alignas(16) ChunkEntry {
  std::int64_t begin;
  std::int32_t b;
  std::int32_t rows;
};

/// Consecutive chunks of one sequence, as one launch of the chain kernel does them: from `chunk`
/// on, counted over all sequences. The state comes from the caller (initial_state, or nothing) or
/// from the run before, and goes to final_state or to the run after.
struct alignas(16) RunEntry {
  std::int64_t chunk;
  std::int32_t chunks;
  std::int32_t n;  ///< sequence
  std::int32_t continues;
  std::int32_t continued;
  std::int64_t unused;
};

/// f32 tensors that a debug run writes beside the results, each optional. [NT] counts chunks over
/// all sequences; rows past a sequence's end are those of zeros.
struct PrefillStages {
  device::Global<float> log_decay;  ///< [NT,HV,64,128] g after gate, natural
  device::Global<float> A;  ///< [NT,HV,64,64] sum_c k_ic k_jc exp(G_ic - G_jc), i > j; else 0
  device::Global<float> Q;  ///< [NT,HV,64,64] the same of q and k, i >= j; else 0; without scale
  device::Global<float> T;  ///< [NT,HV,64,64] (I + diag(beta) A)^-1 diag(beta)
  device::Global<float> U;  ///< [NT,HV,64,128] T (v - (k exp(G)) S), what is written to the state
};

struct PrefillParams {
  RowTensor<const std::byte> q;     ///< bf16
  RowTensor<const std::byte> k;     ///< bf16
  RowTensor<const std::byte> v;     ///< bf16
  RowTensor<const std::byte> g;     ///< bf16, or f32 if g_f32
  RowTensor<const std::byte> beta;  ///< [B,T,HV], bf16, or f32 if beta_f32
  RowTensor<std::byte> o;           ///< bf16
  device::Global<const float> A_log;
  device::Global<const float> dt_bias;
  device::Global<const float> initial_state;  ///< [N,HV,128,128], dense; absent: zeros
  device::Global<float> final_state;          ///< the same; absent: not wanted
  device::Global<float> h;                    ///< [NT,HV,128,128], dense; absent: not wanted
  device::Global<const ChunkEntry> chunks;    ///< of this segment
  device::Global<const RunEntry> runs;        ///< of this segment
  device::Global<std::byte> blobs;            ///< [chunks of the segment][HV][blob]
  device::Global<const float> carry_in;  ///< [HV,128,128] of the run cut by the segment's start
  device::Global<float> carry_out;       ///< the same, by its end
  std::int64_t num_blocks;               ///< with work, of the kernel being launched
  std::int64_t first_chunk;              ///< of the segment
  PrefillStages stages;
  int HV;
  int v_blocks;  ///< blocks along V in the chain kernel
  GateForm gate;
  BetaForm beta_form;
  bool g_f32;
  bool beta_f32;
  bool l2norm;
  bool state_v_first;
  float scale;
  float lower_bound;
};

}  // namespace kda::cuda
