#include "cuda/recurrent.hpp"

#include "reference/recurrent.hpp"
#include "tests/cuda/simt_modes.hpp"
#include "tests/reference/kda_cases.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

// The kernel's results on the executor, against the f64 reference.

namespace kda::cuda {
namespace {

using tests::Extents;
using tests::KdaInputs;

constexpr Contract kContract = Contract::kRecurrentKda;

Outputs run(const KdaInputs& inputs, const simt::Options& options = {},
            simt::Counters* counters = nullptr) {
  KdaInputs without_h = inputs;
  without_h.options.return_intermediate_states = false;
  return run_recurrent_cpu(kContract, without_h.problem(), options, counters);
}

/// Worst error relative to the largest element, over o and final state.
double error_of(const Outputs& got, const KdaInputs& inputs) {
  KdaInputs without_h = inputs;
  without_h.options.return_intermediate_states = false;
  const Semantics s = without_h.semantics();
  return tests::relative_error(got, reference::recurrent(without_h.problem(), s), s);
}

/// As good as a careful f32 recurrence of another author, give or take the order of sums.
void expect_as_good_as_peer(const KdaInputs& inputs, const std::string& what) {
  KdaInputs without_h = inputs;
  without_h.options.return_intermediate_states = false;
  const double peer =
      error_of(reference::recurrent_f32(without_h.problem(), without_h.semantics()), inputs);
  EXPECT_LE(error_of(run(inputs), inputs), 3 * peer + 2e-6) << what << ", peer " << peer;
}

TEST(Recurrent, EveryOptionAgreesWithTheReference) {
  for (const tests::NamedCase& c : tests::option_cases()) expect_as_good_as_peer(c.inputs, c.name);
}

TEST(Recurrent, HardInputsAgreeAsWellAsF32Can) {
  for (const tests::NamedCase& c : tests::hard_cases()) expect_as_good_as_peer(c.inputs, c.name);
}

TEST(Recurrent, EveryHeadDimensionInBothLayouts) {
  for (const bool v_first : {false, true}) {
    for (const auto& [K, V] : {std::pair{1, 1},
                               {5, 31},
                               {64, 33},
                               {65, 32},
                               {100, 40},
                               {128, 128},
                               {129, 7},
                               {200, 72},
                               {256, 256}}) {
      KdaInputs inputs = tests::random_inputs({.T = 3, .H = 1, .HV = 2, .K = K, .V = V}, 5);
      inputs.options.state_v_first = v_first;
      inputs.options.use_qk_l2norm_in_kernel = K == 100;
      inputs.initial_state = tests::random_state(inputs.semantics(), 6);
      expect_as_good_as_peer(inputs, std::to_string(K) + "x" + std::to_string(V));
    }
  }
}

TEST(Recurrent, EveryDtypeOfEveryInput) {
  const Dtype all[] = {Dtype::kBf16, Dtype::kF16, Dtype::kF32};
  for (const Dtype dtype : all) {
    for (const Dtype g : all) {
      for (const Dtype beta : all) {
        KdaInputs inputs =
            tests::random_inputs({.T = 4, .H = 2, .HV = 4, .K = 16, .V = 16}, 7, dtype);
        inputs.g = tests::uniform(g, inputs.g.shape(), 8, -1, 0);
        inputs.beta = tests::uniform(beta, inputs.beta.shape(), 9, 0, 1);
        const Outputs got = run(inputs);
        EXPECT_EQ(got.o.dtype(), dtype);
        EXPECT_EQ(got.final_state->dtype(), Dtype::kF32);
        const std::string what = std::string(name(dtype)) + name(g) + name(beta);
        expect_as_good_as_peer(inputs, what);
      }
    }
  }
}

TEST(Recurrent, BitsDoNotDependOnTheSchedule) {
  for (const bool v_first : {false, true}) {
    KdaInputs inputs =
        tests::random_inputs({.B = 2, .T = 9, .H = 1, .HV = 2, .K = 70, .V = 40}, 10);
    inputs.options.state_v_first = v_first;
    inputs.options.use_qk_l2norm_in_kernel = true;
    inputs.initial_state = tests::random_state(inputs.semantics(), 11);
    simt::Counters first_counters;
    const Outputs first = run(inputs, {}, &first_counters);
    for (const Mode& mode : all_modes()) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        simt::Counters counters;
        const Outputs again = run(inputs, mode.options(seed, seed == 1 ? 1 : 2), &counters);
        EXPECT_TRUE(tests::same_bits(first, again)) << mode.name << " seed " << seed;
        EXPECT_EQ(counters, first_counters) << mode.name << " seed " << seed;
      }
    }
  }
}

TEST(Recurrent, TwoHalvesThroughTheStateAreOneRunToTheBit) {
  for (const bool v_first : {false, true}) {
    KdaInputs whole = tests::random_inputs({.T = 10, .H = 1, .HV = 2, .K = 20, .V = 36}, 12);
    whole.options.state_v_first = v_first;
    const Outputs one = run(whole);
    const Outputs left = run(tests::cut(whole, 0, 4));
    KdaInputs right = tests::cut(whole, 4, 10);
    right.initial_state = left.final_state;
    const Outputs rest = run(right);
    EXPECT_TRUE(tests::same_bits(tests::tokens(one.o, 0, 4), left.o));
    EXPECT_TRUE(tests::same_bits(tests::tokens(one.o, 4, 10), rest.o));
    EXPECT_TRUE(tests::same_bits(*one.final_state, *rest.final_state));
  }
}

TEST(Recurrent, PackedSequencesAreTheirSoloRunsToTheBit) {
  KdaInputs packed = tests::random_inputs({.T = 12, .H = 1, .HV = 2, .K = 12, .V = 12}, 13);
  packed.cu_seqlens = tests::bounds({0, 5, 5, 11});  // one empty, one token in none
  packed.initial_state = tests::random_state(packed.semantics(), 14);
  const Outputs all = run(packed);
  EXPECT_TRUE(
      tests::same_bits(tests::slot(*all.final_state, 1), tests::slot(*packed.initial_state, 1)))
      << "an empty sequence keeps its state";
  for (const auto& [n, begin, end] : {std::tuple{0, 0, 5}, {2, 5, 11}}) {
    KdaInputs solo = tests::cut(packed, begin, end);
    solo.cu_seqlens.reset();
    solo.initial_state = tests::slot(*packed.initial_state, n);
    const Outputs one = run(solo);
    EXPECT_TRUE(tests::same_bits(tests::tokens(all.o, begin, end), one.o));
    EXPECT_TRUE(tests::same_bits(tests::slot(*all.final_state, n), *one.final_state));
  }
}

TEST(Recurrent, ServesChunkKdaWithoutChunkStates) {
  KdaInputs inputs = tests::random_inputs({.T = 5, .K = 8, .V = 8}, 15);
  inputs.options.return_intermediate_states = false;
  const Outputs got = run_recurrent_cpu(Contract::kChunkKda, inputs.problem(), {});
  EXPECT_LE(error_of(got, inputs), 2e-6);
}

/// Bytes of the state, moved once in and once out, in full sectors and 16-byte pieces.
TEST(Recurrent, StateMovesOnceInSixteenBytePieces) {
  for (const bool v_first : {false, true}) {
    KdaInputs inputs = tests::random_inputs({.T = 0, .H = 2, .HV = 2, .K = 128, .V = 64}, 16);
    inputs.options.state_v_first = v_first;
    inputs.cu_seqlens = tests::bounds({0, 0});
    inputs.initial_state = tests::random_state(inputs.semantics(), 17);
    simt::Counters c;
    const Outputs got = run(inputs, {}, &c);
    EXPECT_TRUE(tests::same_bits(*got.final_state, *inputs.initial_state));
    const std::uint64_t bytes = 2 * 128 * 64 * 4;
    EXPECT_EQ(c.global_store.bytes, bytes);
    EXPECT_EQ(c.global_store.sectors, bytes / 32);
    EXPECT_EQ(c.global_store.requests, bytes / (32 * 16));
    // The table's entry is read by every warp: 2 loads of 16 bytes in one sector.
    const std::uint64_t warps = 2 * 2 * 4;
    EXPECT_EQ(c.global_load.bytes, bytes + warps * 2 * 16);
    EXPECT_EQ(c.global_load.requests, bytes / (32 * 16) + warps * 2);
  }
}

TEST(Recurrent, SharedMemoryHasNoBankConflictsInATokensPasses) {
  for (const bool v_first : {false, true}) {
    KdaInputs inputs = tests::random_inputs({.T = 4, .K = 128, .V = 128}, 18);
    inputs.options.state_v_first = v_first;
    simt::Counters c;
    static_cast<void>(run(inputs, {}, &c));
    EXPECT_EQ(c.shared_load.conflicts, 0U);
  }
}

}  // namespace
}  // namespace kda::cuda
