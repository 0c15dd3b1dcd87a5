#pragma once

// The inner loops of the fast form, compiled once per instruction set (see fast_kernel.cpp). Plain
// data and function pointers only: an inline function of the standard library compiled here with
// AVX-512 could be the copy that the linker keeps for the whole program.

namespace kda::reference {

inline constexpr int kStepTokens = 4;  ///< tokens advanced at once
inline constexpr int kColumns = 16;    ///< value columns of one state slice
inline constexpr int kMaxK = 256;
/// Row length of FastStep: beyond kMaxK, so that rows do not fall into the same sets of the cache.
inline constexpr int kPitch = kMaxK + 8;

/// One row of a slice of the state: `kColumns` neighbouring value columns.
struct alignas(64) ColumnRow {
  double x[kColumns];
};

/// What `kStepTokens` tokens i, j do to any slice of the state. D_i is the product of the decays of
/// the step's tokens 0 ... i; every decay is at most 1 and nothing is ever divided by one.
struct alignas(64) FastStep {
  double k_decayed[kStepTokens][kPitch];  ///< k_i D_i: meets the state before the step
  double q_decayed[kStepTokens][kPitch];  ///< q_i D_i
  double k_written[kStepTokens][kPitch];  ///< k_i times the decays after token i
  double decay[kPitch];                   ///< the decay of the whole step
  double A[kStepTokens][kStepTokens];     ///< k_i . (k_j decayed from j to i), for j < i
  double Q[kStepTokens][kStepTokens];     ///< q_i . (k_j decayed from j to i), for j <= i
  double beta[kStepTokens];
};

/// Activated inputs of up to `kStepTokens` tokens; rows follow each other, K apart.
struct StepInputs {
  const double* q;
  const double* k;
  const double* log_decay;
  const double* beta;
  int tokens;  ///< 1 ... kStepTokens; the rest of the step leaves the state as it was
  int K;       ///< at most kMaxK
};

/// Values of one step beside one slice, kStepTokens rows of `kColumns`, `pitch` apart: v, which is
/// overwritten with o.
struct SliceRows {
  double* v_then_o;
  long pitch;
};

struct FastKernel {
  const char* name;
  int lanes;  ///< f64 per vector
  void (*prepare)(const StepInputs& inputs, FastStep& step);
  /// Advances a slice S (K rows) by one step.
  void (*advance)(const FastStep& step, int K, double scale, const SliceRows& rows, ColumnRow* S);
};

extern const FastKernel kFastBaseline;
extern const FastKernel kFastAvx2;
extern const FastKernel kFastAvx512;

}  // namespace kda::reference
