#pragma once

#include "cuda/device/pointers.hpp"
#include "reference/types/dtype.hpp"
#include "reference/types/problem.hpp"

#include <cstddef>
#include <cstdint>

// What the recurrent kernel is given. Plain data, the same for host, CPU kernel and GPU kernel.

namespace kda::cuda {

/// A tensor read or written element by element: [B,T,heads,width], strides in elements.
template <class Byte>
struct TokenTensor {
  device::Global<Byte> data;
  Dtype dtype;
  std::int64_t b;
  std::int64_t t;
  std::int64_t h;
  std::int64_t d;
};

/// States [count,HV,rows,columns] with dense rows; strides in elements. No data: absent.
template <class Byte>
struct StateTensor {
  device::Global<Byte> data;
  std::int64_t slot;
  std::int64_t head;
  std::int64_t row;
  bool vectors;  ///< every row can be moved in pieces of 16 bytes
};

/// One sequence: `length` tokens of batch row `b` from `begin` on. A slot below 0 leaves state and
/// outputs alone.
struct alignas(16) SequenceEntry {
  std::int64_t b;
  std::int64_t begin;
  std::int64_t length;
  std::int64_t slot;
};

struct RecurrentParams {
  TokenTensor<const std::byte> q;
  TokenTensor<const std::byte> k;
  TokenTensor<const std::byte> v;
  TokenTensor<const std::byte> g;
  TokenTensor<const std::byte> beta;  ///< d unused
  TokenTensor<std::byte> o;
  StateTensor<const std::byte> state_in;
  StateTensor<std::byte> state_out;
  device::Global<const float> A_log;          ///< absent: 0
  device::Global<const float> dt_bias;        ///< absent: 0
  device::Global<const SequenceEntry> table;  ///< absent: sequence n is batch row n, slot n
  std::int64_t num_blocks;
  std::int64_t T;
  int HV;
  int K;
  int V;
  int v_blocks;         ///< blocks along V
  int heads_per_group;  ///< HV / H
  GateForm gate;
  BetaForm beta_form;
  bool l2norm;
  float scale;
  float lower_bound;
};

}  // namespace kda::cuda
