#pragma once

#include "tests/reference/kda_inputs.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

// Input families that a chunked prefill may get wrong, and how its error is measured: as a multiple
// of that of a token recurrence in f32.

namespace kda::tests {

enum class Keys : std::uint8_t { kRandom, kIdentical, kNear, kAlternating };
enum class Gates : std::uint8_t {
  kNone,
  kSlow,           ///< -2e-4 to -1e-4
  kUniform,        ///< -5 to 0
  kMinus5,         ///< every one
  kSteep,          ///< -200 softplus(normal)
  kResets,         ///< slow; one token in 20 forgets all (-1000)
  kChannelResets,  ///< slow; one element in 20 is -2000
  kDecades,        ///< channel k decays by 10^(k mod 10 - 6)
  kHalfReset,      ///< slow; token T/2 resets every other channel (-1000)
};
enum class Values : std::uint8_t {
  kRandom,
  kConstant,  ///< one row for all tokens, 1% noise
  kDecades,   ///< columns scaled by 10^(v mod 9 - 4)
  kOneLarge,  ///< token T/2 - 1 is 1e5 times as large
};

struct PrefillFamily {
  std::string_view name;
  std::int64_t T;
  Keys keys = Keys::kRandom;
  Gates gates = Gates::kSlow;
  double noise = 0;  ///< of kNear: length of what is added to the common direction
  double beta = -1;  ///< of every token; negative: uniform between 0 and its size
  Values values = Values::kRandom;
  bool state_decades = false;  ///< initial state rows scaled by 10^(k mod 13 - 6)
  double limit = 1.1;          ///< of the error of o, in f32 recurrences, for the mixed policy
  double state_limit = 5e-4;   ///< of the worst chunk state, relative, likewise; 0 = no promise
};

/// In the order of the table in cuda/README.md.
[[nodiscard]] std::span<const PrefillFamily> prefill_families();

/// `seeds` heads, each from a seed of its own; q, k of length 1 and v in bf16, g and beta f32, an
/// initial state, all outputs asked for. K = V = 128. `T` = 0 takes the family's own.
[[nodiscard]] KdaInputs make_family(const PrefillFamily& family, std::int64_t seeds,
                                    std::int64_t T = 0);

using Compute = std::function<Outputs(const Problem&, const Semantics&)>;

struct FamilyErrors {
  double o = 0;            ///< relative RMS of o, median over the heads
  double o_in_peers = 0;   ///< the same over that of the f32 token recurrence, median of the ratios
  double worst_state = 0;  ///< Frobenius, relative, worst over chunk states and heads
};

/// The exact result and the error of the f32 recurrence are found once; then candidates.
class FamilyJudge {
 public:
  explicit FamilyJudge(KdaInputs inputs);
  [[nodiscard]] FamilyErrors judge(const Compute& compute) const;
  [[nodiscard]] const KdaInputs& inputs() const { return inputs_; }

 private:
  KdaInputs inputs_;
  Semantics semantics_;
  Outputs exact_;
  std::vector<double> peer_;  ///< relative RMS of o by head
};

}  // namespace kda::tests
