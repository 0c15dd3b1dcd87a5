#include "reference/variance_isa.hpp"
#include "reference/vector.hpp"

// Must not include the standard library (see vector.hpp).

namespace kda::reference::KDA_ISA {
namespace {

constexpr int kTile = kScoreRows / kLanes;  ///< vectors of a tile's row

/// Some tokens of the block that meet the keys before them in one product: [first, first + rows).
struct Strip {
  int first;
  int rows;
};

/// Rows of `work`: keys decayed from the border, queries likewise, the squares of both.
MatrixRef part(const Scores& scores, int index) {
  return {scores.work.data + long{index} * kScoreRows * scores.work.pitch, scores.work.pitch};
}

void clear(MatrixRef x, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) x.data[i * x.pitch + j] = 0;
  }
}

/// exp(g) of a row of channels, a vector at a time.
inline Vec decay(const BoundBlock& block, int token, int c) {
  return exp(load(block.log_decay.data + token * block.log_decay.pitch + c));
}

/// The decays of the strip's tokens, E, and keys and queries decayed from the border before it.
void decay_rows(const BoundBlock& block, const Scores& scores, Strip strip) {
  for (int c = 0; c < block.K; c += kLanes) {
    const Real* before = scores.E.data + (strip.first - 1) * scores.E.pitch + c;
    const Vec E_border = strip.first > 0 ? load(before) : splat(1);
    Vec from_border = splat(1);
    for (int i = 0; i < strip.rows; ++i) {
      const int token = strip.first + i;
      const Vec d = decay(block, token, c);
      from_border *= d;
      store(d, scores.decays.data + token * scores.decays.pitch + c);
      store(E_border * from_border, scores.E.data + token * scores.E.pitch + c);
      const Vec k = load(block.k.data + token * block.k.pitch + c) * from_border;
      const Vec q = load(block.q.data + token * block.q.pitch + c) * from_border;
      const long at = i * scores.work.pitch + c;
      store(k, part(scores, 0).data + at);
      store(q, part(scores, 1).data + at);
      store(k * k, part(scores, 2).data + at);
      store(q * q, part(scores, 3).data + at);
    }
  }
}

/// The strip against all keys before it, and these keys decayed on to its end.
void meet_earlier(const BoundBlock& block, const Scores& scores, Strip strip) {
  const int K = block.K;
  const MatrixRef& W = scores.Wt;
  for (int c = 0; c < K; ++c) {
    for (int j = 0; j < strip.first; j += kLanes) {
      const Vec w = load(W.data + c * W.pitch + j);
      store(w * w, scores.squares.data + c * scores.squares.pitch + j);
    }
  }
  const Extents extents{strip.rows, K, strip.first};
  const auto rows = [&](MatrixRef x) { return MatrixRef{x.data + strip.first * x.pitch, x.pitch}; };
  product(rows_of(part(scores, 0)), W, extents, Shape::kFull, Store::kSet, rows(scores.A));
  product(rows_of(part(scores, 1)), W, extents, Shape::kFull, Store::kSet, rows(scores.Q));
  product(rows_of(part(scores, 2)), scores.squares, extents, Shape::kFull, Store::kSet,
          rows(scores.A_terms));
  product(rows_of(part(scores, 3)), scores.squares, extents, Shape::kFull, Store::kSet,
          rows(scores.Q_terms));
}

/// One token against the earlier ones of its strip, whose keys decay on to it.
void meet_tile_row(const BoundBlock& block, const Scores& scores, Strip strip, int i) {
  const int token = strip.first + i;
  const Real* decays = scores.decays.data + token * scores.decays.pitch;
  const Real* k = block.k.data + token * block.k.pitch;
  const Real* q = block.q.data + token * block.q.pitch;
  Vec A[kTile] = {};
  Vec a_terms[kTile] = {};
  Vec Q[kTile] = {};
  Vec q_terms[kTile] = {};
  Real own = 0;
  Real own_terms = 0;
  for (int c = 0; c < block.K; ++c) {
    Real* w = scores.Wt.data + c * scores.Wt.pitch + strip.first;
    for (int j = 0; j < kTile; ++j) {
      const Vec decayed = load(w + long{j} * kLanes) * decays[c];
      store(decayed, w + long{j} * kLanes);
      const Vec a = decayed * k[c];
      const Vec b = decayed * q[c];
      A[j] += a;
      a_terms[j] += a * a;
      Q[j] += b;
      q_terms[j] += b * b;
    }
    w[i] = k[c];
    own += q[c] * k[c];
    own_terms += q[c] * k[c] * (q[c] * k[c]);
  }
  for (int j = 0; j < kTile; ++j) {
    const auto at = [&](MatrixRef x) {
      return x.data + token * x.pitch + strip.first + long{j} * kLanes;
    };
    store(A[j], at(scores.A));
    store(a_terms[j], at(scores.A_terms));
    store(Q[j], at(scores.Q));
    store(q_terms[j], at(scores.Q_terms));
  }
  scores.Q.data[token * scores.Q.pitch + token] = own;
  scores.Q_terms.data[token * scores.Q_terms.pitch + token] = own_terms;
}

/// Keys before the strip decay over the whole strip.
void decay_earlier(const BoundBlock& block, const Scores& scores, Strip strip) {
  for (int c = 0; c < block.K; ++c) {
    Real whole = 1;
    for (int i = strip.first; i < strip.first + strip.rows; ++i) {
      whole *= scores.decays.data[i * scores.decays.pitch + c];
    }
    Real* w = scores.Wt.data + c * scores.Wt.pitch;
    for (int j = 0; j < strip.first; j += kLanes) store(load(w + j) * whole, w + j);
  }
}

}  // namespace

void compute_scores(const BoundBlock& block, const Scores& scores) {
  const int n = (block.tokens + kScoreRows - 1) / kScoreRows * kScoreRows;
  const MatrixRef by_pair[] = {scores.A, scores.A_terms, scores.Q, scores.Q_terms};
  for (const MatrixRef& x : by_pair) clear(x, block.tokens, n);
  clear(scores.Wt, block.K, n);
  for (int first = 0; first < block.tokens; first += kScoreRows) {
    const int left = block.tokens - first;
    const Strip strip{first, left < kScoreRows ? left : kScoreRows};
    decay_rows(block, scores, strip);
    if (first > 0) meet_earlier(block, scores, strip);
    for (int i = 0; i < strip.rows; ++i) meet_tile_row(block, scores, strip, i);
    decay_earlier(block, scores, strip);
  }
}

}  // namespace kda::reference::KDA_ISA
