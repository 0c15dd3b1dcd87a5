#pragma once

#include "harness/base/verdict.hpp"
#include "harness/case/case.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/run/judge.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace kda::harness {

/// What a call does to the implementation under judgement, as `judge` says it.
using VerdictOn = std::function<Verdict(const KdaCase&)>;

struct ShrinkLimits {
  std::int64_t judgements = 600;  ///< calls of the implementation, repeated votes included
  /// No call begins later, but for the last one that tells whether the smallest case still fails.
  double seconds = 120;
};

struct Shrunk {
  KdaCase smallest;
  Verdict verdict = Verdict::kPassed;  ///< of the case that was given, and of `smallest`
  std::int64_t votes = 0;              ///< times that `smallest` failed so ...
  std::int64_t of_votes = 0;           ///< ... when it was judged this often at the end
  std::int64_t judgements = 0;
  bool exhausted = false;  ///< a limit ended the search: it may be smaller still
};

/// Makes a call that fails smaller as long as it fails with the same verdict: fewer sequences,
/// heads, value heads, tokens, channels; options back to their defaults; simpler numbers. A call
/// that does not fail every time is judged by the majority of five. Throws kUsage when it does not
/// fail at all.
[[nodiscard]] Shrunk shrink(const KdaCase& failing, const VerdictOn& verdict_on,
                            const ShrinkLimits& limits = {});

/// The verdict of `judge` against a reference, whatever the case's own expected values say. Keeps a
/// reference to the implementation.
[[nodiscard]] VerdictOn judged_by(const Implementation& implementation, const Judging& judging);

/// "N=1 T=7 H=1 HV=1 K=8 V=8 gate=softplus initial_state": what is left.
[[nodiscard]] std::string describe(const KdaCase& kda_case);

}  // namespace kda::harness
