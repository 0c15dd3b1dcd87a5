#include "reference/fast_kernel.hpp"

#include "reference/vector.hpp"

// Compiled once per instruction set with KDA_FAST_KERNEL (name of the table), KDA_FAST_NAME (its
// text) and KDA_FAST_LANES. Must not include the standard library (see the header).

namespace kda::reference {
namespace {

// Vectors side by side in one register block: 32 registers hold twice as many sums as 16.
constexpr int kVectors = kLanes == 8 ? 2 : 1;
constexpr int kBlock = kLanes * kVectors;
static_assert(kColumns % kBlock == 0 && kPitch % kLanes == 0);

/// The first `count` elements from `from` on, then zeros.
inline Vec load_up_to(const double* from, int count) {
  if (count >= kLanes) return load(from);
  Vec x{};
  for (int lane = 0; lane < count; ++lane) x[lane] = from[lane];
  return x;
}

void prepare(const StepInputs& inputs, FastStep& step) {
  Vec A[kStepTokens][kStepTokens] = {};
  Vec Q[kStepTokens][kStepTokens] = {};
  for (int c = 0; c < inputs.K; c += kLanes) {
    Vec k[kStepTokens];
    Vec q[kStepTokens];
    Vec decay[kStepTokens];
    for (int i = 0; i < kStepTokens; ++i) {
      // Zeros beyond K and for tokens beyond the last: such a token leaves the state as it was.
      const int count = i < inputs.tokens ? inputs.K - c : 0;
      const int at = i * inputs.K + c;
      k[i] = load_up_to(inputs.k + at, count);
      q[i] = load_up_to(inputs.q + at, count);
      decay[i] = exp(load_up_to(inputs.log_decay + at, count));
    }
    Vec from_start = splat(1.0);
    for (int i = 0; i < kStepTokens; ++i) {
      from_start *= decay[i];
      store(k[i] * from_start, &step.k_decayed[i][c]);
      store(q[i] * from_start, &step.q_decayed[i][c]);
    }
    store(from_start, &step.decay[c]);
    for (int j = 0; j < kStepTokens; ++j) {
      Vec k_decayed = k[j];
      Q[j][j] += q[j] * k_decayed;
      for (int i = j + 1; i < kStepTokens; ++i) {
        k_decayed *= decay[i];
        A[i][j] += k[i] * k_decayed;
        Q[i][j] += q[i] * k_decayed;
      }
      store(k_decayed, &step.k_written[j][c]);
    }
  }
  for (int i = 0; i < kStepTokens; ++i) {
    for (int j = 0; j < kStepTokens; ++j) {
      step.A[i][j] = sum(A[i][j]);
      step.Q[i][j] = sum(Q[i][j]);
    }
    step.beta[i] = i < inputs.tokens ? inputs.beta[i] : 0.0;
  }
}

/// One step on `kBlock` columns from `column` on: two passes over the slice, which sits in the L1
/// cache, with all sums in registers.
inline void advance_block(const FastStep& step, int K, double scale, int column,
                          const SliceRows& rows, ColumnRow* S) {
  // What the tokens would read from the state before the step.
  Vec read_k[kStepTokens][kVectors] = {};
  Vec read_q[kStepTokens][kVectors] = {};
  for (int k = 0; k < K; ++k) {
    for (int j = 0; j < kVectors; ++j) {
      const Vec s = load(&S[k].x[column + j * kLanes]);
      for (int i = 0; i < kStepTokens; ++i) {
        read_k[i][j] += s * step.k_decayed[i][k];
        read_q[i][j] += s * step.q_decayed[i][k];
      }
    }
  }
  // What each of them writes, given what the earlier ones of the step wrote.
  Vec written[kStepTokens][kVectors];
  for (int j = 0; j < kVectors; ++j) {
    for (int i = 0; i < kStepTokens; ++i) {
      const long at = i * rows.pitch + column + long{j} * kLanes;
      Vec prediction = read_k[i][j];
      Vec result = read_q[i][j];
      for (int m = 0; m < i; ++m) {
        prediction += written[m][j] * step.A[i][m];
        result += written[m][j] * step.Q[i][m];
      }
      written[i][j] = (load(rows.v_then_o + at) - prediction) * step.beta[i];
      result += written[i][j] * step.Q[i][i];
      store(result * scale, rows.v_then_o + at);
    }
  }
  for (int k = 0; k < K; ++k) {
    for (int j = 0; j < kVectors; ++j) {
      double* at = &S[k].x[column + j * kLanes];
      Vec s = load(at) * step.decay[k];
      for (int i = 0; i < kStepTokens; ++i) s += written[i][j] * step.k_written[i][k];
      store(s, at);
    }
  }
}

void advance(const FastStep& step, int K, double scale, const SliceRows& rows, ColumnRow* S) {
  for (int column = 0; column < kColumns; column += kBlock) {
    advance_block(step, K, scale, column, rows, S);
  }
}

}  // namespace

extern const FastKernel KDA_FAST_KERNEL{KDA_FAST_NAME, kLanes, prepare, advance};

}  // namespace kda::reference
