#pragma once

#include "cuda/kernels/prefill_inverse.hpp"

// First kernel of the prefill: what a chunk of one head is to the chain (prefill_workspace.hpp),
// without knowing the state. One block a chunk and head; nothing here depends on another chunk, and
// nothing of a token on later tokens but Kd and kap, which serve the state after the chunk.

namespace kda::cuda::kernels {
inline namespace KDA_FLAVOUR {

/// Shared memory of a block.
template <PrefillPolicy kPolicy>
struct FactorMemory {
  LevelOperands<kPolicy> operands;
  WarpTotals totals;
  Square A;
  Square Q;                ///< right behind A
  Shared<float> betas;     ///< [64] write strength; from `scale_betas` on beta~
  Shared<float> k_scales;  ///< [64]
  Shared<float> q_scales;  ///< [64]

  static constexpr int kBytes = LevelOperands<kPolicy>::kBytes +
                                (WarpTotals::kFloats + 2 * Square::kFloats + 3 * kPrefillChunk) * 4;

  KDA_DEVICE static FactorMemory take() {
    device::SharedCarver carver;
    FactorMemory m{};
    m.operands.bytes = carver.template take<std::byte>(LevelOperands<kPolicy>::kBytes);
    m.totals.values = carver.template take<float>(WarpTotals::kFloats);
    m.A.values = carver.template take<float>(2 * Square::kFloats);
    m.Q.values = m.A.values + Square::kFloats;
    m.betas = carver.template take<float>(kPrefillChunk);
    m.k_scales = carver.template take<float>(kPrefillChunk);
    m.q_scales = carver.template take<float>(kPrefillChunk);
    return m;
  }

  /// A and Q cut into a part for each warp.
  static constexpr int kWarpFloats = 2 * Square::kFloats / kFactorWarps;
  static_assert(kWarpFloats >= DecayStage::kFloats && kWarpFloats % 4 == 0);
  [[nodiscard]] KDA_DEVICE DecayStage decay_stage(int warp) const {
    return {A.values + warp * kWarpFloats};
  }
  /// Zeros over the warp's part of A and Q: what no sum is put into counts as 0.
  KDA_DEVICE void clear_squares(int warp, int lane) const {
    const auto pieces = (A.values + warp * kWarpFloats).template as<Vec<float, 4>>();
    for (int at = lane; at < kWarpFloats / 4; at += 32) {
      device::store(pieces, at, {{0.F, 0.F, 0.F, 0.F}});
    }
  }
};

/// Four neighbouring channels of a row of Kg, Qg or Kd.
template <bool kF16, int kParts>
KDA_DEVICE void put_row(Global<std::byte> tile, int row, int channel, const Channels& x) {
  Words<kParts> left;
  Words<kParts> right;
  split_pair<kF16, kParts>(x[0], x[1], left);
  split_pair<kF16, kParts>(x[2], x[3], right);
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int at = part * (kPrefillChunk * kPrefillDim * 2) + prefill_tile_byte(row, channel);
    device::store((tile + at).as<Vec<std::uint32_t, 2>>(), 0, {{left[part], right[part]}});
  }
}

/// The scale of a row of Kg and Qg: the power of two at or below its largest exp(G).
KDA_DEVICE float row_power(float largest) {
  int n = static_cast<int>(device::float_bits(largest) >> 23) - 127;
  n = n < -100 ? -100 : (n > 100 ? 100 : n);
  return device::bits_float(static_cast<std::uint32_t>(127 + n) << 23);
}

/// 1 / x of a power of two.
KDA_DEVICE float inverse_power(float x) {
  return device::bits_float((254U << 23) - device::float_bits(x));
}

/// Kg, Qg and p.
template <PrefillPolicy kPolicy>
KDA_DEVICE void put_reads(const FactorPlace& place, const OwnRows& rows, const WarpTotals& totals,
                          Global<std::byte> blob) {
  using Format = PrefillFormat<kPolicy>;
  constexpr bool kF16 = Format::kWideF16;
  constexpr int kParts = Format::kWideParts;
  Channels start = {1.F, 1.F, 1.F, 1.F};
  totals.multiply(WarpTotals::kAll, 0, place.warp, place.channel(), start);
  Channels run;
  Floats<kOwnRows> largest = {};
  float power = 1.F;
  if constexpr (kF16) {
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) run[e] = start[e];
    KDA_UNROLL
    for (int r = 0; r < kOwnRows; ++r) {
      KDA_UNROLL
      for (int e = 0; e < kOwnChannels; ++e) {
        run[e] *= rows.decay[r][e];
        largest[r] = run[e] > largest[r] ? run[e] : largest[r];
      }
    }
    power = row_power(combine_across<kOwnRows, true>(largest, place.lane));
  }
  if (place.lane % 4 == 0) {
    device::store((blob + Format::kP).template as<float>(), place.row(place.lane / 4),
                  power * (1.F / Format::kWideScale));
  }
  KDA_UNROLL
  for (int e = 0; e < kOwnChannels; ++e) run[e] = start[e];
  KDA_UNROLL
  for (int r = 0; r < kOwnRows; ++r) {
    float up = 1.F;
    if constexpr (kF16) {
      up = inverse_power(device::shuffle_idx(power, 4 * r)) * Format::kWideScale;
    }
    Channels x;
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) {
      run[e] *= rows.decay[r][e];
      x[e] = rows.key(r, e) * (run[e] * up);
    }
    put_row<kF16, kParts>(blob + Format::kKg, place.row(r), place.channel(), x);
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) x[e] = rows.query(r, e) * (run[e] * up);
    put_row<kF16, kParts>(blob + Format::kQg, place.row(r), place.channel(), x);
  }
}

/// Kd.
template <PrefillPolicy kPolicy>
KDA_DEVICE void put_writes(const FactorPlace& place, const OwnRows& rows, const WarpTotals& totals,
                           int last_write, Global<std::byte> blob) {
  using Format = PrefillFormat<kPolicy>;
  Channels run = {1.F, 1.F, 1.F, 1.F};
  totals.multiply(WarpTotals::kUntilLastWrite, place.warp + 1, kFactorWarps, place.channel(), run);
  KDA_UNROLL
  for (int r = kOwnRows - 1; r >= 0; --r) {
    Channels x;
    KDA_UNROLL
    for (int e = 0; e < kOwnChannels; ++e) {
      x[e] = rows.key(r, e) * run[e];
      run[e] *= place.row(r) <= last_write ? rows.decay[r][e] : 1.F;
    }
    put_row<false, Format::kSmallParts>(blob + Format::kKd, place.row(r), place.channel(), x);
  }
}

/// decay, kap, v_scale and o_scale.
template <PrefillPolicy kPolicy>
KDA_DEVICE void put_vectors(const PrefillParams& p, const FactorMemory<kPolicy>& memory, int thread,
                            Global<std::byte> blob) {
  using Format = PrefillFormat<kPolicy>;
  if (thread < kPrefillDim) {
    float log_sum = 0.F;
    float after = 1.F;
    for (int w = 0; w < kFactorWarps; ++w) {
      log_sum += device::load(memory.totals.at(WarpTotals::kLogSum, w, thread), 0);
      after *= device::load(memory.totals.at(WarpTotals::kAfterLastWrite, w, thread), 0);
    }
    device::store((blob + Format::kDecay).template as<float>(), thread, decay_code(log_sum));
    device::store((blob + Format::kKap).template as<float>(), thread, after);
    return;
  }
  const int row = thread - kPrefillDim;
  if (row < kPrefillChunk) {
    const float ck = device::load(memory.k_scales, row);
    device::store((blob + Format::kVScale).template as<float>(), row, p.l2norm ? 1.F : ck);
  } else {
    const float cq = device::load(memory.q_scales, row - kPrefillChunk);
    device::store((blob + Format::kOScale).template as<float>(), row - kPrefillChunk,
                  p.l2norm ? p.scale : device::div_rn(p.scale, cq));
  }
}

/// beta~ = beta / ck^2 where ck only changes the unit of k.
KDA_DEVICE void scale_betas(const PrefillParams& p, int thread, Shared<float> betas,
                            Shared<float> k_scales) {
  if (thread >= kPrefillChunk || p.l2norm) return;
  const float ck = device::load(k_scales, thread);
  device::store(betas, thread, device::div_rn(device::load(betas, thread), ck * ck));
}

/// Keeps T finite where exact results are far beyond any use (|beta| |k|^2 much above 2), so that 0
/// times infinity cannot reach earlier tokens.
KDA_DEVICE float clamped(float x) {
  constexpr float kMost = 0x1p60F;
  return x > kMost ? kMost : (x < -kMost ? -kMost : x);
}

/// Eight neighbouring elements of T or Q~ of row i.
template <int kParts>
KDA_DEVICE void put_triangle(Global<std::byte> triangle, int i, int j, const Floats<8>& x) {
  Vec<std::uint32_t, 4> parts[static_cast<unsigned>(kParts)];
  KDA_UNROLL
  for (int pair = 0; pair < 4; ++pair) {
    Words<kParts> words;
    split_pair<false, kParts>(x[2 * pair], x[2 * pair + 1], words);
    KDA_UNROLL
    for (int part = 0; part < kParts; ++part) parts[part].x[pair] = words[part];
  }
  KDA_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int at = part * 10 * 512 + prefill_triangle_byte(i, j);
    device::store((triangle + at).as<Vec<std::uint32_t, 4>>(), 0, parts[part]);
  }
}

/// T = X diag(beta~) and Q~, element by element 0 above the diagonal.
template <PrefillPolicy kPolicy>
KDA_DEVICE void put_triangles(const FactorMemory<kPolicy>& memory, int thread,
                              Global<std::byte> blob) {
  using Format = PrefillFormat<kPolicy>;
  constexpr int kPieces = 10 * 16 * 2;
  KDA_NO_UNROLL
  for (int task = thread; task < 2 * kPieces; task += kFactorThreads) {
    const bool query = task >= kPieces;
    const int piece = query ? task - kPieces : task;
    const int block = piece / 32;
    const int block_i = (block >= 1 ? 1 : 0) + (block >= 3 ? 1 : 0) + (block >= 6 ? 1 : 0);
    const int i = 16 * block_i + piece % 32 / 2;
    const int j = 16 * (block - block_i * (block_i + 1) / 2) + piece % 2 * 8;
    const Square& from = query ? memory.Q : memory.A;
    Floats<8> x;
    KDA_UNROLL
    for (int part = 0; part < 2; ++part) {
      const Vec<float, 4> values = from.four(i, j + 4 * part);
      const Vec<float, 4> betas =
          device::load((memory.betas + (j + 4 * part)).template as<const Vec<float, 4>>(), 0);
      KDA_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float value = query ? values.x[e] : clamped(values.x[e] * betas.x[e]);
        x[4 * part + e] = j + 4 * part + e <= i ? value : 0.F;
      }
    }
    if (query) {
      put_triangle<Format::kSmallParts>(blob + Format::kQ, i, j, x);
    } else {
      put_triangle<Format::kTParts>(blob + Format::kT, i, j, x);
    }
  }
}

/// A, Q or T of a debug run, in the caller's units: entries (i, j) times row[i] column[j].
template <class Element>
KDA_DEVICE void store_stage_square(Global<float> to, std::int64_t head, int thread,
                                   Element element) {
  for (int at = thread; at < kPrefillChunk * kPrefillChunk; at += kFactorThreads) {
    device::store(to, head * (kPrefillChunk * kPrefillChunk) + at,
                  element(at / kPrefillChunk, at % kPrefillChunk));
  }
}

template <PrefillPolicy kPolicy>
KDA_DEVICE void store_stages_before_inverse(const PrefillParams& p,
                                            const FactorMemory<kPolicy>& memory, std::int64_t head,
                                            int thread) {
  const auto unit = [&](Shared<float> scales, int i) {
    return p.l2norm ? 1.F : device::load(scales, i);
  };
  if (p.stages.A) {
    store_stage_square(p.stages.A, head, thread, [&](int i, int j) {
      if (j >= i) return 0.F;
      return memory.A.get(i, j) / (unit(memory.k_scales, i) * unit(memory.k_scales, j));
    });
  }
  if (p.stages.Q) {
    store_stage_square(p.stages.Q, head, thread, [&](int i, int j) {
      if (j > i) return 0.F;
      return memory.Q.get(i, j) / (unit(memory.q_scales, i) * unit(memory.k_scales, j));
    });
  }
}

template <PrefillPolicy kPolicy>
KDA_DEVICE void store_stage_T(const PrefillParams& p, const FactorMemory<kPolicy>& memory,
                              std::int64_t head, int thread) {
  const auto unit = [&](int i) { return p.l2norm ? 1.F : device::load(memory.k_scales, i); };
  store_stage_square(p.stages.T, head, thread, [&](int i, int j) {
    if (j > i) return 0.F;
    return clamped(memory.A.get(i, j) * device::load(memory.betas, j)) * (unit(i) * unit(j));
  });
}

template <PrefillPolicy kPolicy>
KDA_KERNEL_RESIDENT(kFactorThreads, kFactorBlocks)
prefill_factors_kernel(PrefillParams p) {
  const FactorMemory<kPolicy> memory = FactorMemory<kPolicy>::take();
  const auto grid_row = static_cast<std::int64_t>(device::block_idx_y());
  const std::int64_t block = grid_row * device::grid_dim_x() + device::block_idx_x();
  if (block >= p.num_blocks) return;
  const int thread = static_cast<int>(device::thread_idx_x());
  FactorPlace place{};
  place.chunk = block / p.HV;
  place.hv = static_cast<int>(block % p.HV);
  place.warp = thread / 32;
  place.lane = static_cast<int>(device::lane_id());
  place.entry = load_chunk(p, place.chunk);
  const Global<std::byte> blob = p.blobs + block * std::int64_t{PrefillFormat<kPolicy>::kBlobBytes};

  const DecayStage decay_stage = memory.decay_stage(place.warp);
  copy_gates(p, place, decay_stage);
  OwnRows rows;
  load_keys_and_queries(p, place, rows);
  put_scales(p, place, rows, memory.k_scales, memory.q_scales);
  Channels log_sum;
  make_decays(p, place, decay_stage, log_sum);
  load_decays(place, decay_stage, rows);
  const int last_write = load_betas(p, place, memory.betas);
  put_totals(place, rows, log_sum, last_write, memory.totals);
  device::sync_warp();  // all have their decays in registers
  memory.clear_squares(place.warp, place.lane);
  device::sync_block();

  scale_betas(p, thread, memory.betas, memory.k_scales);
  const auto start_phase = [&] { rows.start_phase(place, memory.k_scales, memory.q_scales); };
  start_phase();
  leaf_part<false, false>(place, rows, memory.k_scales, memory.q_scales, memory.A, memory.Q);
  start_phase();
  leaf_part<false, true>(place, rows, memory.k_scales, memory.q_scales, memory.A, memory.Q);
  start_phase();
  leaf_part<true, false>(place, rows, memory.k_scales, memory.q_scales, memory.A, memory.Q);
  start_phase();
  leaf_part<true, true>(place, rows, memory.k_scales, memory.q_scales, memory.A, memory.Q);
  start_phase();
  put_reads<kPolicy>(place, rows, memory.totals, blob);
  start_phase();
  put_writes<kPolicy>(place, rows, memory.totals, last_write, blob);
  put_vectors<kPolicy>(p, memory, thread, blob);
  KDA_NO_UNROLL
  for (int warps = 4; warps >= 1; warps /= 2) {
    start_phase();
    put_level_rows<kPolicy>(place, rows, memory.totals, warps, memory.operands);
    device::sync_block();
    multiply_level<kPolicy>(place, warps * kOwnRows, memory.operands, memory.A, memory.Q);
    device::sync_block();
  }
  const std::int64_t head = (p.first_chunk + place.chunk) * p.HV + place.hv;
  if (p.stages.A || p.stages.Q) {
    store_stages_before_inverse<kPolicy>(p, memory, head, thread);
    device::sync_block();
  }
  invert(place, memory.A, memory.betas);
  put_triangles<kPolicy>(memory, thread, blob);
  if (p.stages.T) store_stage_T<kPolicy>(p, memory, head, thread);
}

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
