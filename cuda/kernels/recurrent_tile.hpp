#pragma once

#include "cuda/device/primitives.hpp"
#include "cuda/kernels/gate_math.hpp"
#include "cuda/recurrent_params.hpp"

#include <cstdint>

// A block's part of the state, all K rows of 32 value columns, in the registers of its 128 threads.
// Either memory layout is moved in 16-byte pieces along its inner dimension, so each has its own
// distribution, and its own way of summing over K.

namespace kda::cuda::kernels {

inline constexpr int kThreads = 128;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kColumns = 32;  ///< value columns of a block

inline namespace KDA_FLAVOUR {

using device::FloatMatrix;
using device::Floats;
using device::Global;
using device::Shared;
using device::Vec;

/// 16 bytes of a state row, as floats; columns at and beyond `limit` are 0.
template <class State, int E>
KDA_DEVICE void load_piece(Floats<E>& s, Global<const State> row, int column, int limit,
                           bool vectors) {
  if (vectors && column + E <= limit) {
    const auto piece = device::load((row + column).template as<Vec<State, E>>(), 0);
    KDA_UNROLL
    for (int e = 0; e < E; ++e) s[e] = device::widen(piece.x[e]);
    return;
  }
  KDA_UNROLL
  for (int e = 0; e < E; ++e) {
    s[e] = column + e < limit ? device::widen(device::load(row, column + e)) : 0.F;
  }
}

template <class State, int E>
KDA_DEVICE void store_piece(const Floats<E>& s, Global<State> row, int column, int limit,
                            bool vectors) {
  if (vectors && column + E <= limit) {
    Vec<State, E> piece{};
    KDA_UNROLL
    for (int e = 0; e < E; ++e) piece.x[e] = device::narrow<State>(s[e]);
    device::store((row + column).template as<Vec<State, E>>(), 0, piece);
    return;
  }
  KDA_UNROLL
  for (int e = 0; e < E; ++e) {
    if (column + e < limit) device::store(row, column + e, device::narrow<State>(s[e]));
  }
}

/// Per channel of a token: key, query, decay (decay_code), in one 16-byte word. All lanes with the
/// same channel read it at once.
template <int KP>
struct ChannelWords {
  Shared<Vec<float, 4>> words;

  KDA_DEVICE void put(int c, float k, float q, float decay) const {
    device::store(words, c, {{k, q, decay, 0.F}});
  }
};

/// The same in three arrays, for lanes that read 4 neighbouring channels each.
template <int KP>
struct ChannelArrays {
  Shared<float> values;

  KDA_DEVICE void put(int c, float k, float q, float decay) const {
    device::store(values, c, k);
    device::store(values, KP + c, q);
    device::store(values, 2 * KP + c, decay);
  }
  [[nodiscard]] KDA_DEVICE Vec<float, 4> get(int which, int c) const {
    return device::load((values + (which * KP + c)).template as<Vec<float, 4>>(), 0);
  }
};

/// State [K,V]: a thread has kPiece columns of every kRowStep-th row.
template <class State, int KP>
struct KvTile {
  static constexpr int kPiece = 16 / static_cast<int>(sizeof(State));
  static constexpr int kLanesPerRow = kColumns / kPiece;
  static constexpr int kRowStep = kThreads / kLanesPerRow;
  static constexpr int kRows = KP / kRowStep;
  static constexpr int kOwnColumns = kPiece;
  using Channels = ChannelWords<KP>;

  FloatMatrix<kRows, kPiece> s{};
  int first_row;
  int first_column;

  /// The state of a sequence that starts from nothing.
  KDA_DEVICE explicit KvTile(int thread)
      : first_row(thread / kLanesPerRow), first_column(thread % kLanesPerRow * kPiece) {}

  [[nodiscard]] KDA_DEVICE int column(int j) const { return first_column + j; }
  /// Of the threads that come to know a column's sums, the one that writes its output.
  [[nodiscard]] KDA_DEVICE bool writes_output() const { return first_row == 0; }

  KDA_DEVICE void load(Global<const State> head, std::int64_t row_stride, int K, int v0, int V,
                       bool vectors) {
    KDA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const int row = first_row + i * kRowStep;
      const int limit = row < K ? V : 0;
      load_piece<State, kPiece>(s[i], head + row * row_stride, v0 + first_column, limit, vectors);
    }
  }

  KDA_DEVICE void store(Global<State> head, std::int64_t row_stride, int K, int v0, int V,
                        bool vectors) const {
    KDA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const int row = first_row + i * kRowStep;
      const int limit = row < K ? V : 0;
      store_piece<State, kPiece>(s[i], head + row * row_stride, v0 + first_column, limit, vectors);
    }
  }

  /// Decays the state; adds k.S and q.S of this thread's rows, then of its warp's.
  KDA_DEVICE void decay_and_read(Channels channels, Floats<kPiece>& k_sum, Floats<kPiece>& q_sum) {
    KDA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Vec<float, 4> c = device::load(channels.words, first_row + i * kRowStep);
      KDA_UNROLL
      for (int e = 0; e < kPiece; ++e) {
        s[i][e] = decayed(c.x[2], s[i][e]);
        k_sum[e] = device::fma_rn(c.x[0], s[i][e], k_sum[e]);
        q_sum[e] = device::fma_rn(c.x[1], s[i][e], q_sum[e]);
      }
    }
    KDA_UNROLL
    for (int step = kLanesPerRow; step < 32; step *= 2) {
      KDA_UNROLL
      for (int e = 0; e < kPiece; ++e) {
        k_sum[e] += device::shuffle_xor(k_sum[e], step);
        q_sum[e] += device::shuffle_xor(q_sum[e], step);
      }
    }
  }

  /// A warp's sums, for the others: [warp][k or q][column].
  KDA_DEVICE void publish_sums(Shared<float> warp_sums, int thread, const Floats<kPiece>& k_sum,
                               const Floats<kPiece>& q_sum) const {
    if (thread % 32 >= kLanesPerRow) return;
    const int at = thread / 32 * 2 * kColumns;
    KDA_UNROLL
    for (int e = 0; e < kPiece; ++e) {
      device::store(warp_sums, at + column(e), k_sum[e]);
      device::store(warp_sums, at + kColumns + column(e), q_sum[e]);
    }
  }

  KDA_DEVICE void collect_sums(Shared<float> warp_sums, Floats<kPiece>& k_sum,
                               Floats<kPiece>& q_sum) const {
    KDA_UNROLL
    for (int e = 0; e < kPiece; ++e) k_sum[e] = q_sum[e] = 0.F;
    // Not unrolled, or all of these loads would be in flight at once, at a register each.
    KDA_NO_UNROLL
    for (int w = 0; w < kWarps; ++w) {
      const int at = w * 2 * kColumns;
      KDA_UNROLL
      for (int e = 0; e < kPiece; ++e) {
        k_sum[e] += device::load(warp_sums, at + column(e));
        q_sum[e] += device::load(warp_sums, at + kColumns + column(e));
      }
    }
  }

  /// S += k w^T.
  KDA_DEVICE void write(Channels channels, const Floats<kPiece>& w) {
    KDA_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float k = device::load(channels.words, first_row + i * kRowStep).x[0];
      KDA_UNROLL
      for (int e = 0; e < kPiece; ++e) s[i][e] = device::fma_rn(k, w[e], s[i][e]);
    }
  }
};

/// State [V,K]: a warp has 8 columns; their channels lie along its lanes, kPiece to a piece.
template <class State, int KP>
struct VkTile {
  static constexpr int kPiece = 16 / static_cast<int>(sizeof(State));
  static constexpr int kLanesPerRow = KP / kPiece < 32 ? KP / kPiece : 32;
  static constexpr int kPieces = KP / (kPiece * kLanesPerRow);
  static constexpr int kRowsAtOnce = 32 / kLanesPerRow;
  static constexpr int kOwnColumns = kColumns / kWarps / kRowsAtOnce;
  using Channels = ChannelArrays<KP>;

  FloatMatrix<kPieces, kPiece> s[static_cast<unsigned>(kOwnColumns)]{};
  int first_channel;
  int first_row;

  KDA_DEVICE explicit VkTile(int thread)
      : first_channel(thread % 32 % kLanesPerRow * kPiece),
        first_row(thread / 32 * (kColumns / kWarps) + thread % 32 / kLanesPerRow) {}

  [[nodiscard]] KDA_DEVICE int column(int j) const { return first_row + j * kRowsAtOnce; }
  [[nodiscard]] KDA_DEVICE bool writes_output() const { return first_channel == 0; }
  [[nodiscard]] KDA_DEVICE int channel(int piece) const {
    return first_channel + piece * kLanesPerRow * kPiece;
  }

  KDA_DEVICE void load(Global<const State> head, std::int64_t row_stride, int K, int v0, int V,
                       bool vectors) {
    KDA_UNROLL
    for (int j = 0; j < kOwnColumns; ++j) {
      const int v = v0 + column(j);
      KDA_UNROLL
      for (int p = 0; p < kPieces; ++p) {
        load_piece<State, kPiece>(s[j][p], head + v * row_stride, channel(p), v < V ? K : 0,
                                  vectors);
      }
    }
  }

  KDA_DEVICE void store(Global<State> head, std::int64_t row_stride, int K, int v0, int V,
                        bool vectors) const {
    KDA_UNROLL
    for (int j = 0; j < kOwnColumns; ++j) {
      const int v = v0 + column(j);
      KDA_UNROLL
      for (int p = 0; p < kPieces; ++p) {
        store_piece<State, kPiece>(s[j][p], head + v * row_stride, channel(p), v < V ? K : 0,
                                   vectors);
      }
    }
  }

  /// Decays the state; k.S and q.S of each column, complete in every lane that holds part of it.
  KDA_DEVICE void decay_and_read(Channels channels, Floats<kOwnColumns>& k_sum,
                                 Floats<kOwnColumns>& q_sum) {
    KDA_UNROLL
    for (int p = 0; p < kPieces; ++p) {
      KDA_UNROLL
      for (int part = 0; part < kPiece; part += 4) {
        const Vec<float, 4> k = channels.get(0, channel(p) + part);
        const Vec<float, 4> q = channels.get(1, channel(p) + part);
        const Vec<float, 4> decay = channels.get(2, channel(p) + part);
        KDA_UNROLL
        for (int j = 0; j < kOwnColumns; ++j) {
          KDA_UNROLL
          for (int e = 0; e < 4; ++e) {
            float& x = s[j][p][part + e];
            x = decayed(decay.x[e], x);
            k_sum[j] = device::fma_rn(k.x[e], x, k_sum[j]);
            q_sum[j] = device::fma_rn(q.x[e], x, q_sum[j]);
          }
        }
      }
    }
    KDA_UNROLL
    for (int step = 1; step < kLanesPerRow; step *= 2) {
      KDA_UNROLL
      for (int j = 0; j < kOwnColumns; ++j) {
        k_sum[j] += device::shuffle_xor(k_sum[j], step);
        q_sum[j] += device::shuffle_xor(q_sum[j], step);
      }
    }
  }

  KDA_DEVICE void write(Channels channels, const Floats<kOwnColumns>& w) {
    KDA_UNROLL
    for (int p = 0; p < kPieces; ++p) {
      KDA_UNROLL
      for (int part = 0; part < kPiece; part += 4) {
        const Vec<float, 4> k = channels.get(0, channel(p) + part);
        KDA_UNROLL
        for (int j = 0; j < kOwnColumns; ++j) {
          KDA_UNROLL
          for (int e = 0; e < 4; ++e) {
            float& x = s[j][p][part + e];
            x = device::fma_rn(k.x[e], w[j], x);
          }
        }
      }
    }
  }
};

}  // namespace KDA_FLAVOUR
}  // namespace kda::cuda::kernels
