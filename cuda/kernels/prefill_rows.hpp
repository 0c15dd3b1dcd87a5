#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/kernels/gate_math.hpp"
#include "cuda/kernels/prefill_operands.hpp"
#include "cuda/kernels/prefill_workspace.hpp"
#include "cuda/prefill_params.hpp"

#include <cstdint>

// A chunk's inputs as the first kernel holds them: a warp has 8 tokens, a lane 4 channels of each.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

inline constexpr int kFactorThreads = 256;
inline constexpr int kFactorWarps = 8;
/// Blocks on a multiprocessor that registers are limited for: 128 a thread for two. On sm_100 that
/// would spill.
inline constexpr int kFactorBlocks = KDA_ARCH >= 1000 ? 1 : 2;
inline constexpr int kOwnRows = 8;
inline constexpr int kOwnChannels = 4;

using Channels = Floats<kOwnChannels>;

/// What a block works on.
struct FactorPlace {
  ChunkEntry entry;
  std::int64_t chunk;  ///< of the segment
  int hv;
  int warp;
  int lane;

  [[nodiscard]] KDA_DEVICE int row(int r) const { return warp * kOwnRows + r; }
  [[nodiscard]] KDA_DEVICE int channel() const { return lane * kOwnChannels; }
};

template <bool kLargest>
KDA_DEVICE float join(float a, float b) {
  if constexpr (kLargest) return a > b ? a : b;
  return a + b;
}

/// Halves what a lane holds: of x it keeps the half that bit kBit of its number names, combined
/// with that of the lane across.
template <int kHalf, int kBit, bool kLargest>
KDA_DEVICE void fold_across(const float (&x)[static_cast<unsigned>(2 * kHalf)], int lane,
                            float (&y)[static_cast<unsigned>(kHalf)]) {
  const std::uint32_t upper = 0U - static_cast<std::uint32_t>(lane / kBit % 2);
  KDA_UNROLL
  for (int i = 0; i < kHalf; ++i) {
    // Chosen by bits: of a choice by condition the compiler makes one between places in memory.
    const std::uint32_t low = device::float_bits(x[i]);
    const std::uint32_t high = device::float_bits(x[i + kHalf]);
    const float sent = device::bits_float((low & upper) | (high & ~upper));
    const float kept = device::bits_float((high & upper) | (low & ~upper));
    const float other = device::shuffle_xor(sent, kBit);
    y[i] = join<kLargest>(kept, other);
  }
}

/// Combines N (16 or 8) numbers across the warp, each with those of the same index in other lanes:
/// lane l ends with the sum or the largest of index l / (32 / N). Always the same tree.
template <int N, bool kLargest>
KDA_DEVICE float combine_across(const Floats<N>& x, int lane) {
  static_assert(N == 16 || N == 8);
  float four[4];
  float two[2];
  float one[1];
  if constexpr (N == 16) {
    float eight[8];
    fold_across<8, 16, kLargest>(x, lane, eight);
    fold_across<4, 8, kLargest>(eight, lane, four);
  } else {
    fold_across<4, 16, kLargest>(x, lane, four);
  }
  fold_across<2, N == 16 ? 4 : 8, kLargest>(four, lane, two);
  fold_across<1, N == 16 ? 2 : 4, kLargest>(two, lane, one);
  float result = one[0];
  KDA_UNROLL
  for (int bit = 1; bit < 32 / N; bit *= 2) {
    result = join<kLargest>(result, device::shuffle_xor(result, bit));
  }
  return result;
}

/// The tokens of a warp.
struct OwnRows {
  Vec<std::uint32_t, 2> k[static_cast<unsigned>(kOwnRows)];  ///< bf16 as loaded
  Vec<std::uint32_t, 2> q[static_cast<unsigned>(kOwnRows)];
  FloatMatrix<kOwnRows, kOwnChannels> decay;  ///< exp(g)
  Floats<kOwnRows> k_scale;                   ///< ck
  Floats<kOwnRows> q_scale;                   ///< cq

  KDA_DEVICE static float element(const Vec<std::uint32_t, 2>& words, int e) {
    return e % 2 == 0 ? bf16_low(words.x[e / 2]) : bf16_high(words.x[e / 2]);
  }
  [[nodiscard]] KDA_DEVICE float key(int r, int e) const { return element(k[r], e) * k_scale[r]; }
  [[nodiscard]] KDA_DEVICE float query(int r, int e) const { return element(q[r], e) * q_scale[r]; }

  /// Before each phase: ck and cq, and a new start for the compiler, which would else keep keys and
  /// queries in f32, 64 registers of them.
  KDA_DEVICE void start_phase(const FactorPlace& place, Shared<float> k_scales,
                              Shared<float> q_scales) {
    KDA_UNROLL
    for (int r = 0; r < kOwnRows; ++r) {
      KDA_UNROLL
      for (int word = 0; word < 2; ++word) {
        k[r].x[word] = device::opaque(k[r].x[word]);
        q[r].x[word] = device::opaque(q[r].x[word]);
      }
    }
    KDA_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = place.row(4 * half);
      const auto ck = device::load((k_scales + row).as<const Vec<float, 4>>(), 0);
      const auto cq = device::load((q_scales + row).as<const Vec<float, 4>>(), 0);
      KDA_UNROLL
      for (int r = 0; r < 4; ++r) {
        k_scale[4 * half + r] = ck.x[r];
        q_scale[4 * half + r] = cq.x[r];
      }
    }
  }
};

KDA_DEVICE Vec<std::uint32_t, 2> load_four(const RowTensor<const std::byte>& x, std::int64_t at) {
  return device::load((x.data + at * 2).as<const Vec<std::uint32_t, 2>>(), 0);
}

template <class Byte>
KDA_DEVICE std::int64_t row_offset(const RowTensor<Byte>& x, const FactorPlace& place, int row) {
  return place.entry.b * x.b + (place.entry.begin + row) * x.t + place.hv * x.h;
}

/// Rows past the end are zeros.
KDA_DEVICE void load_keys_and_queries(const PrefillParams& p, const FactorPlace& place,
                                      OwnRows& rows) {
  KDA_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    rows.k[r] = rows.q[r] = {{0, 0}};
    const int row = place.row(r);
    if (row >= place.entry.rows) continue;
    rows.k[r] = load_four(p.k, row_offset(p.k, place, row) + place.channel());
    rows.q[r] = load_four(p.q, row_offset(p.q, place, row) + place.channel());
  }
}

/// The power of two that brings `largest` into [0.5, 1), within 2^+-24: its square stays far from
/// the ends of f32.
KDA_DEVICE float unit_scale(float largest) {
  int n = 126 - static_cast<int>(device::float_bits(largest) >> 23);
  n = n > 24 ? 24 : (n < -24 ? -24 : n);
  if (largest == 0.F) n = 0;
  return device::bits_float(static_cast<std::uint32_t>(127 + n) << 23);
}

/// ck and cq of the warp's rows.
template <bool kNorm>
KDA_DEVICE void put_scales_of(const FactorPlace& place, const OwnRows& rows, Shared<float> k_scales,
                              Shared<float> q_scales) {
  Floats<2 * kOwnRows> x;
  KDA_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    float kk = 0.F;
    float qq = 0.F;
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) {
      const float k = OwnRows::element(rows.k[r], e);
      const float q = OwnRows::element(rows.q[r], e);
      kk = kNorm ? device::fma_rn(k, k, kk) : (absolute(k) > kk ? absolute(k) : kk);
      qq = kNorm ? device::fma_rn(q, q, qq) : (absolute(q) > qq ? absolute(q) : qq);
    }
    x[r] = kk;
    x[kOwnRows + r] = qq;
  }
  const float size = combine_across<2 * kOwnRows, !kNorm>(x, place.lane);
  const float scale = kNorm ? device::div_rn(1.F, device::sqrt_rn(size + 1e-6F)) : unit_scale(size);
  if (place.lane % 2 == 0) {
    const int row = place.row(place.lane / 2 % kOwnRows);
    device::store(place.lane < 16 ? k_scales : q_scales, row, scale);
  }
}

KDA_DEVICE void put_scales(const PrefillParams& p, const FactorPlace& place, const OwnRows& rows,
                           Shared<float> k_scales, Shared<float> q_scales) {
  if (p.l2norm) {
    put_scales_of<true>(place, rows, k_scales, q_scales);
  } else {
    put_scales_of<false>(place, rows, k_scales, q_scales);
  }
}

KDA_DEVICE float prefill_log_decay(const PrefillParams& p, float A_log, float bias, float g) {
  switch (p.gate) {
    case GateForm::kSoftplus: return softplus_gate(A_log, g + bias);
    case GateForm::kLowerBound: return bounded_gate(A_log, p.lower_bound, g + bias);
    default: return g;
  }
}

/// Memory of a warp alone, in which the decays of its tokens are made: registers have to be named
/// by constants, and a loop in their place would hold the gate's code 32 times.
struct DecayStage {
  static constexpr int kFloats = kOwnRows * kPrefillDim;
  Shared<float> values;  ///< [8][128]

  /// The lane's four channels of a row.
  [[nodiscard]] KDA_DEVICE Shared<Vec<float, 4>> four(int r, int lane) const {
    return (values + (r * kPrefillDim + lane * kOwnChannels)).as<Vec<float, 4>>();
  }
};

/// Starts copying g, to be waited for by `make_decays`.
KDA_DEVICE void copy_gates(const PrefillParams& p, const FactorPlace& place,
                           const DecayStage& stage) {
  KDA_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    const int row = place.row(r);
    const bool inside = row < place.entry.rows;
    const std::int64_t at = row_offset(p.g, place, inside ? row : 0) + place.channel();
    if (p.g_f32) {
      device::copy_async<16>(stage.four(r, place.lane), p.g.data + at * 4, inside ? 16 : 0);
    } else {
      device::copy_async<8>(stage.four(r, place.lane), p.g.data + at * 2, inside ? 8 : 0);
    }
  }
  device::copy_commit();
}

/// exp(g) in place of g; returns in `sum` the sums of the logarithms. Lanes touch only what they
/// have copied themselves.
KDA_DEVICE void make_decays(const PrefillParams& p, const FactorPlace& place,
                            const DecayStage& stage, Channels& sum) {
  constexpr float kLog2e = 1.44269502F;
  const bool gated = p.gate != GateForm::kLogDecay;
  const float A_log = gated ? device::load(p.A_log, place.hv) : 0.F;
  Channels bias = {};
  KDA_UNROLL
  for (int e = 0; e < kOwnChannels; ++e) {
    if (gated) {
      bias[e] = device::load(
          p.dt_bias, static_cast<std::int64_t>(place.hv) * kPrefillDim + place.channel() + e);
    }
    sum[e] = 0.F;
  }
  const std::int64_t head = (p.first_chunk + place.chunk) * p.HV + place.hv;
  device::copy_wait<0>();
  KDA_NO_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    const auto words = stage.four(r, place.lane);
    Vec<float, 4> g{};
    if (p.g_f32) {
      g = device::load(words, 0);
    } else {
      const auto pairs = device::load(words.as<Vec<std::uint32_t, 2>>(), 0);
      KDA_UNROLL
      for (int e = 0; e < kOwnChannels; ++e) g.x[e] = OwnRows::element(pairs, e);
    }
    const bool inside = place.row(r) < place.entry.rows;
    Vec<float, 4> decay{};
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) {
      const float log_decay = inside ? prefill_log_decay(p, A_log, bias[e], g.x[e]) : 0.F;
      sum[e] += log_decay;
      decay.x[e] = device::ex2_approx(log_decay * kLog2e);
      if (p.stages.log_decay) {
        device::store(p.stages.log_decay,
                      (head * kPrefillChunk + place.row(r)) * kPrefillDim + place.channel() + e,
                      log_decay);
      }
    }
    device::store(words, 0, decay);
  }
}

KDA_DEVICE void load_decays(const FactorPlace& place, const DecayStage& stage, OwnRows& rows) {
  KDA_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    const Vec<float, 4> decay = device::load(stage.four(r, place.lane), 0);
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) rows.decay[r][e] = decay.x[e];
  }
}

/// Write strength of a token; 0 past the end.
KDA_DEVICE float load_beta(const PrefillParams& p, const FactorPlace& place, int row) {
  if (row >= place.entry.rows) return 0.F;
  const std::int64_t at = row_offset(p.beta, place, row);
  const float beta = p.beta_f32 ? device::load(p.beta.data.as<const float>(), at)
                                : device::widen(device::load(p.beta.data.as<const Bf16>(), at));
  switch (p.beta_form) {
    case BetaForm::kReady: return beta;
    case BetaForm::kLogit: return sigmoid(beta);
    default: return 2.F * sigmoid(beta);
  }
}

/// -1 for 0.
KDA_DEVICE int highest_bit(std::uint32_t x) {
  KDA_UNROLL
  for (int step = 1; step < 32; step *= 2) x |= x >> step;
  return device::count_bits(x) - 1;
}

/// The last token of the chunk that writes, or -1; every warp finds it by itself. Warp 0 leaves the
/// write strengths in shared memory.
KDA_DEVICE int load_betas(const PrefillParams& p, const FactorPlace& place, Shared<float> betas) {
  const float low = load_beta(p, place, place.lane);
  const float high = load_beta(p, place, 32 + place.lane);
  const std::uint32_t low_writes = device::warp_ballot(low != 0.F);
  const std::uint32_t high_writes = device::warp_ballot(high != 0.F);
  if (place.warp == 0) {
    device::store(betas, place.lane, low);
    device::store(betas, 32 + place.lane, high);
  }
  return high_writes != 0 ? 32 + highest_bit(high_writes) : highest_bit(low_writes);
}

/// Products and sums over the tokens of each warp, by channel.
struct WarpTotals {
  Shared<float> values;  ///< [4][8 warps][128]
  static constexpr int kFloats = 4 * kFactorWarps * kPrefillDim;
  enum Kind { kAll, kUntilLastWrite, kAfterLastWrite, kLogSum };

  [[nodiscard]] KDA_DEVICE Shared<float> at(Kind kind, int warp, int channel) const {
    return values + ((kind * kFactorWarps + warp) * kPrefillDim + channel);
  }
  KDA_DEVICE void put(Kind kind, const FactorPlace& place, const Channels& x) const {
    device::store(at(kind, place.warp, place.channel()).as<Vec<float, 4>>(), 0,
                  {{x[0], x[1], x[2], x[3]}});
  }
  /// x times the products of warps first .. last - 1.
  KDA_DEVICE void multiply(Kind kind, int first, int last, int channel, Channels& x) const {
    KDA_NO_UNROLL
    for (int w = first; w < last; ++w) {
      const auto words = device::load(at(kind, w, channel).as<const Vec<float, 4>>(), 0);
      KDA_UNROLL
      for (int e = 0; e < kOwnChannels; ++e) x[e] *= words.x[e];
    }
  }
};

KDA_DEVICE void put_totals(const FactorPlace& place, const OwnRows& rows, const Channels& log_sum,
                           int last_write, const WarpTotals& totals) {
  Channels all = {1.F, 1.F, 1.F, 1.F};
  Channels until = {1.F, 1.F, 1.F, 1.F};
  Channels after = {1.F, 1.F, 1.F, 1.F};
  KDA_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) {
      const float d = rows.decay[r][e];
      all[e] *= d;
      until[e] *= place.row(r) <= last_write ? d : 1.F;
      after[e] *= place.row(r) <= last_write ? 1.F : d;
    }
  }
  totals.put(WarpTotals::kAll, place, all);
  totals.put(WarpTotals::kUntilLastWrite, place, until);
  totals.put(WarpTotals::kAfterLastWrite, place, after);
  totals.put(WarpTotals::kLogSum, place, log_sum);
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
