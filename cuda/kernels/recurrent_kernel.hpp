#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/kernels/gate_math.hpp"
#include "cuda/kernels/recurrent_tile.hpp"
#include "cuda/recurrent_params.hpp"

#include <cstdint>

// KDA token by token. Per token, with d = e^g:
//   S^ = d S;  w = beta (v - k^T S^);  o = scale (q^T S^ + (q.k) w);  S = S^ + k w^T
// so that one pass over the state gives both sums. A block has one value head of one sequence and
// 32 of its value columns; the state stays in registers from the first token to the last.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

template <class Byte>
KDA_DEVICE float load_number(const TokenTensor<Byte>& x, std::int64_t at) {
  switch (x.dtype) {
    case Dtype::kBf16: return device::widen(device::load(x.data.template as<Bf16>(), at));
    case Dtype::kF16: return device::widen(device::load(x.data.template as<F16>(), at));
    default: return device::load(x.data.template as<float>(), at);
  }
}

KDA_DEVICE void store_number(const TokenTensor<std::byte>& x, std::int64_t at, float value) {
  switch (x.dtype) {
    case Dtype::kBf16: device::store(x.data.as<Bf16>(), at, device::narrow<Bf16>(value)); return;
    case Dtype::kF16: device::store(x.data.as<F16>(), at, device::narrow<F16>(value)); return;
    default: device::store(x.data.as<float>(), at, value);
  }
}

template <class Byte>
KDA_DEVICE std::int64_t token_offset(const TokenTensor<Byte>& x, std::int64_t b, std::int64_t t,
                                     int h) {
  return b * x.b + t * x.t + h * x.h;
}

/// What a block works on.
struct Place {
  SequenceEntry sequence;
  int hv;
  int h;
  int v0;
};

KDA_DEVICE Place locate(const RecurrentParams& p, std::int64_t block) {
  const std::int64_t row = block / p.v_blocks;
  const std::int64_t n = row / p.HV;
  Place place{};
  place.hv = static_cast<int>(row % p.HV);
  place.h = place.hv / p.heads_per_group;
  place.v0 = static_cast<int>(block % p.v_blocks) * kColumns;
  if (p.table) {
    const auto words = p.table.as<const Vec<std::int64_t, 2>>();
    const auto first = device::load(words, 2 * n);
    const auto second = device::load(words, 2 * n + 1);
    place.sequence = {first.x[0], first.x[1], second.x[0], second.x[1]};
  } else {
    place.sequence = {n, 0, p.T, n};
  }
  return place;
}

/// A thread's share of one token's inputs, as loaded.
template <int KP>
struct TokenInputs {
  static constexpr int kChannels = (KP + kThreads - 1) / kThreads;
  Floats<kChannels> q;
  Floats<kChannels> k;
  Floats<kChannels> g;
  float v;
  float beta;

  KDA_DEVICE void load(const RecurrentParams& p, const Place& place, std::int64_t i_t, int thread) {
    const std::int64_t t = place.sequence.begin + i_t;
    const std::int64_t b = place.sequence.b;
    KDA_UNROLL
    for (int i = 0; i < kChannels; ++i) {
      const int c = thread + i * kThreads;
      q[i] = k[i] = g[i] = 0.F;
      if (c >= p.K) continue;
      q[i] = load_number(p.q, token_offset(p.q, b, t, place.h) + c * p.q.d);
      k[i] = load_number(p.k, token_offset(p.k, b, t, place.h) + c * p.k.d);
      g[i] = load_number(p.g, token_offset(p.g, b, t, place.hv) + c * p.g.d);
    }
    v = beta = 0.F;
    const int column = place.v0 + thread;
    if (thread < kColumns && column < p.V) {
      v = load_number(p.v, token_offset(p.v, b, t, place.hv) + column * p.v.d);
    }
    if (thread == 0) beta = load_number(p.beta, token_offset(p.beta, b, t, place.hv));
  }
};

KDA_DEVICE float log_decay(const RecurrentParams& p, int hv, int c, float g) {
  if (p.gate == GateForm::kLogDecay) return g;
  const float A_log = p.A_log ? device::load(p.A_log, hv) : 0.F;
  const std::int64_t at = static_cast<std::int64_t>(hv) * p.K + c;
  const float y = p.dt_bias ? g + device::load(p.dt_bias, at) : g;
  return p.gate == GateForm::kSoftplus ? softplus_gate(A_log, y)
                                       : bounded_gate(A_log, p.lower_bound, y);
}

KDA_DEVICE float write_strength(const RecurrentParams& p, float beta) {
  switch (p.beta_form) {
    case BetaForm::kReady: return beta;
    case BetaForm::kLogit: return sigmoid(beta);
    default: return 2.F * sigmoid(beta);
  }
}

/// Shared memory of one token; two of them take turns, so that one barrier a token is enough to
/// keep its readers from the next writers.
template <class Tile>
struct Stage {
  typename Tile::Channels channels;
  Shared<float> v;        ///< [32]
  Shared<float> scalars;  ///< [16] beta, then q.q, k.k, q.k of each warp
  Shared<float> o;        ///< [32] leaves for global memory one token later, in whole sectors
};
inline constexpr int kTokenFloats = kColumns + 16 + kColumns;

/// Puts a token's inputs where all threads see them.
template <class Tile, int KP>
KDA_DEVICE void stage_token(const RecurrentParams& p, const Place& place, const TokenInputs<KP>& in,
                            const Stage<Tile>& stage, int thread) {
  float qq = 0.F;
  float kk = 0.F;
  float qk = 0.F;
  KDA_UNROLL
  for (int i = 0; i < TokenInputs<KP>::kChannels; ++i) {
    const int c = thread + i * kThreads;
    if (c < KP) {
      const float decay = c < p.K ? decay_code(log_decay(p, place.hv, c, in.g[i])) : 0.F;
      stage.channels.put(c, in.k[i], in.q[i], decay);
    }
    qq = device::fma_rn(in.q[i], in.q[i], qq);
    kk = device::fma_rn(in.k[i], in.k[i], kk);
    qk = device::fma_rn(in.q[i], in.k[i], qk);
  }
  KDA_UNROLL
  for (int step = 1; step < 32; step *= 2) {
    qq += device::shuffle_xor(qq, step);
    kk += device::shuffle_xor(kk, step);
    qk += device::shuffle_xor(qk, step);
  }
  if (thread % 32 == 0) {
    const int at = 1 + thread / 32 * 3;
    device::store(stage.scalars, at, qq);
    device::store(stage.scalars, at + 1, kk);
    device::store(stage.scalars, at + 2, qk);
  }
  if (thread < kColumns) device::store(stage.v, thread, in.v);
  if (thread == 0) device::store(stage.scalars, 0, write_strength(p, in.beta));
}

/// A token's numbers that all threads share: beta, what l2norm multiplies q and k with, and q.k.
struct TokenScalars {
  float beta;
  float q_factor;
  float k_factor;
  float qk;
};

template <class Tile>
KDA_DEVICE TokenScalars token_scalars(const RecurrentParams& p, const Stage<Tile>& stage) {
  float qq = 0.F;
  float kk = 0.F;
  TokenScalars t{device::load(stage.scalars, 0), 1.F, 1.F, 0.F};
  KDA_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    qq += device::load(stage.scalars, 1 + w * 3);
    kk += device::load(stage.scalars, 2 + w * 3);
    t.qk += device::load(stage.scalars, 3 + w * 3);
  }
  if (p.l2norm) {
    t.q_factor = device::div_rn(1.F, device::sqrt_rn(qq + 1e-6F));
    t.k_factor = device::div_rn(1.F, device::sqrt_rn(kk + 1e-6F));
  }
  return t;
}

template <class Tile>
KDA_DEVICE void store_output(const RecurrentParams& p, const Place& place, std::int64_t i_t,
                             const Stage<Tile>& stage, int thread) {
  const int column = place.v0 + thread;
  if (thread >= kColumns || column >= p.V) return;
  const std::int64_t t = place.sequence.begin + i_t;
  const std::int64_t at = token_offset(p.o, place.sequence.b, t, place.hv) + column * p.o.d;
  store_number(p.o, at, device::load(stage.o, thread));
}

/// Of the tiles, [K,V] spreads a column over all warps and needs their sums put together.
template <class State, bool kKeyFirst, int KP>
struct TileOf {
  using Type = KvTile<State, KP>;
};
template <class State, int KP>
struct TileOf<State, false, KP> {
  using Type = VkTile<State, KP>;
};

/// Shared memory of the block, and the stage of a token in it.
template <class Tile, bool kKeyFirst, int KP>
struct Stages {
  static constexpr int kChannelFloats = kKeyFirst ? 4 * KP : 3 * KP;
  static constexpr int kAllChannelFloats = 2 * kChannelFloats;
  static constexpr int kAllTokenFloats = 2 * kTokenFloats;
  static constexpr int kSumFloats = kKeyFirst ? kWarps * 2 * kColumns : 1;

  Shared<float> channel_floats;
  Shared<float> token_floats;

  [[nodiscard]] KDA_DEVICE Stage<Tile> of(std::int64_t i_t) const {
    const std::int64_t i = i_t & 1;
    Stage<Tile> stage{};
    const Shared<float> channels = channel_floats + i * kChannelFloats;
    if constexpr (kKeyFirst) {
      stage.channels.words = channels.template as<Vec<float, 4>>();
    } else {
      stage.channels.values = channels;
    }
    stage.v = token_floats + i * kTokenFloats;
    stage.scalars = stage.v + kColumns;
    stage.o = stage.scalars + 16;
    return stage;
  }
};

template <class State, class Tile>
KDA_DEVICE void load_tile(const RecurrentParams& p, const Place& place, Tile& tile) {
  const StateTensor<const std::byte>& x = p.state_in;
  if (!x.data) return;
  const auto head =
      x.data.template as<State>() + (place.sequence.slot * x.slot + place.hv * x.head);
  tile.load(head, x.row, p.K, place.v0, p.V, x.vectors);
}

template <class State, class Tile>
KDA_DEVICE void store_tile(const RecurrentParams& p, const Place& place, const Tile& tile) {
  const StateTensor<std::byte>& x = p.state_out;
  if (!x.data) return;
  const auto head =
      x.data.template as<State>() + (place.sequence.slot * x.slot + place.hv * x.head);
  tile.store(head, x.row, p.K, place.v0, p.V, x.vectors);
}

/// From a token's sums over K: what is written to the state, and the output. With l2norm the
/// vectors are k k_factor and q q_factor; the factors go into the sums.
template <class Tile>
KDA_DEVICE void finish_token(const RecurrentParams& p, const Stage<Tile>& stage, const Tile& tile,
                             const Floats<Tile::kOwnColumns>& k_sum,
                             const Floats<Tile::kOwnColumns>& q_sum, Floats<Tile::kOwnColumns>& w) {
  const TokenScalars t = token_scalars(p, stage);
  KDA_UNROLL
  for (int j = 0; j < Tile::kOwnColumns; ++j) {
    const float v = device::load(stage.v, tile.column(j));
    const float delta = t.beta * device::fma_rn(-t.k_factor, k_sum[j], v);
    w[j] = t.k_factor * delta;
    if (tile.writes_output()) {
      const float o = p.scale * t.q_factor * device::fma_rn(t.qk, w[j], q_sum[j]);
      device::store(stage.o, tile.column(j), o);
    }
  }
}

/// Blocks on a multiprocessor: as many as registers allow without spilling. Several keep enough
/// loads of states in flight, and decoding does little else.
template <class State, bool kKeyFirst, int KP>
constexpr int kResidentBlocks = KP == 256 ? 2 : (kKeyFirst && sizeof(State) == 2 ? 3 : 4);

/// State is float or Bf16; KP is K rounded up to 64, 128 or 256.
template <class State, bool kKeyFirst, int KP>
KDA_KERNEL_RESIDENT(kThreads, (kResidentBlocks<State, kKeyFirst, KP>))
recurrent_kernel(RecurrentParams p) {
  using Tile = typename TileOf<State, kKeyFirst, KP>::Type;
  using Memory = Stages<Tile, kKeyFirst, KP>;
  KDA_SHARED(float, channel_floats, Memory::kAllChannelFloats);
  KDA_SHARED(float, token_floats, Memory::kAllTokenFloats);
  KDA_SHARED(float, warp_sums, Memory::kSumFloats);
  const Memory stages{channel_floats, token_floats};

  const int thread = static_cast<int>(device::thread_idx_x());
  const auto row = static_cast<std::int64_t>(device::block_idx_y());
  const std::int64_t block = row * device::grid_dim_x() + device::block_idx_x();
  if (block >= p.num_blocks) return;
  const Place place = locate(p, block);
  const std::int64_t length = place.sequence.length;
  if (place.sequence.slot < 0) return;

  Tile tile(thread);
  load_tile<State>(p, place, tile);
  TokenInputs<KP> next{};
  if (length > 0) next.load(p, place, 0, thread);
  for (std::int64_t i_t = 0; i_t < length; ++i_t) {
    const Stage<Tile> stage = stages.of(i_t);
    stage_token<Tile, KP>(p, place, next, stage, thread);
    device::sync_block();
    if (i_t + 1 < length) next.load(p, place, i_t + 1, thread);
    if (i_t > 0) store_output(p, place, i_t - 1, stages.of(i_t - 1), thread);

    Floats<Tile::kOwnColumns> k_sum = {};
    Floats<Tile::kOwnColumns> q_sum = {};
    tile.decay_and_read(stage.channels, k_sum, q_sum);
    if constexpr (kKeyFirst) {
      tile.publish_sums(warp_sums, thread, k_sum, q_sum);
      device::sync_block();
      tile.collect_sums(warp_sums, k_sum, q_sum);
    }
    Floats<Tile::kOwnColumns> w = {};
    finish_token(p, stage, tile, k_sum, q_sum, w);
    tile.write(stage.channels, w);
  }
  if (length > 0) {
    device::sync_block();
    store_output(p, place, length - 1, stages.of(length - 1), thread);
  }
  store_tile<State>(p, place, tile);
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
