#include "reference/fast.hpp"
#include "reference/peer_prefill.hpp"
#include "tests/cuda/prefill_call.hpp"
#include "tests/cuda/prefill_families.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// How far the prefill kernel lands from the exact result, against a token recurrence in f32. A part
// of what prefill_accuracy prints.

namespace kda::cuda {
namespace {

using tests::Compute;
using tests::FamilyErrors;
using tests::FamilyJudge;
using tests::KdaInputs;
using tests::PrefillFamily;

Compute kernel(PrefillPolicy policy) {
  return [policy](const Problem& p, const Semantics&) {
    return run_prefill_cpu(p, {.policy = policy}, {});
  };
}

Compute peer(const reference::PeerFormats& formats) {
  return [&formats](const Problem& p, const Semantics& s) {
    return reference::peer_prefill(p, s, formats);
  };
}

/// The default policy on a family; each of `seeds` is a head.
void expect_within_limits(const PrefillFamily& family, std::int64_t seeds, std::int64_t T) {
  const FamilyJudge judge(tests::make_family(family, seeds, T));
  const FamilyErrors got = judge.judge(kernel(PrefillPolicy::kMixed));
  EXPECT_LE(got.o_in_peers, family.limit) << family.name << ", T = " << T;
  if (family.state_limit > 0) {
    EXPECT_LE(got.worst_state, family.state_limit) << family.name << ", T = " << T;
  }
  // The plain emulation of the same rounding: neither better nor worse.
  const FamilyErrors want = judge.judge(peer(reference::kPeerMixed));
  EXPECT_NEAR(got.o_in_peers, want.o_in_peers, 0.1 * want.o_in_peers) << family.name;
}

TEST(PrefillAccuracy, WithinTheLimitsOfEveryFamily) {
  for (const PrefillFamily& family : tests::prefill_families()) {
    expect_within_limits(family, 6, 128);
  }
}

/// Where errors could gather from chunk to chunk: random keys, with and without write strengths
/// that keep everything, and keys that nearly repeat.
TEST(PrefillAccuracy, WithinTheLimitsOverSixteenChunks) {
  constexpr std::array kFamilies{"slow gate",
                                 "random keys, beta 2, no decay",
                                 "identical keys, beta .9",
                                 "keys within 1%, beta 1",
                                 "keys within 1%, beta 1.98",
                                 "keys within 1%, beta 2",
                                 "alternating keys, beta 1.5"};
  std::size_t seen = 0;
  for (const PrefillFamily& family : tests::prefill_families()) {
    if (std::ranges::find(kFamilies, family.name) == kFamilies.end()) continue;
    expect_within_limits(family, 3, 1024);
    ++seen;
  }
  EXPECT_EQ(seen, kFamilies.size());
}

/// The coarser kernel is seen to be coarser: the measure can fail.
TEST(PrefillAccuracy, SingleBf16IsOutsideTheLimits) {
  for (const PrefillFamily& family : tests::prefill_families()) {
    if (family.name != "slow gate" && family.name != "keys within 1%, beta 1") continue;
    const FamilyJudge judge(tests::make_family(family, 2, 128));
    EXPECT_GT(judge.judge(kernel(PrefillPolicy::kBf16)).o_in_peers, family.limit) << family.name;
  }
}

double relative_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = to_f64(a.view());
  const std::vector<double> y = to_f64(b.view());
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  return std::sqrt(error / size);
}

/// Two sets of operand formats check each other without any oracle.
TEST(PrefillAccuracy, PoliciesAgree) {
  const KdaInputs inputs = prefill_inputs(200, 2, 41);
  const Outputs split = run_prefill_case(inputs, {.policy = PrefillPolicy::kSplit});
  const Outputs mixed = run_prefill_case(inputs, {.policy = PrefillPolicy::kMixed});
  const Outputs single = run_prefill_case(inputs, {.policy = PrefillPolicy::kBf16});
  EXPECT_LE(relative_difference(*mixed.final_state, *split.final_state), 5e-4);
  EXPECT_LE(relative_difference(*mixed.h, *split.h), 5e-4);
  EXPECT_LE(relative_difference(mixed.o, split.o), 2e-3);
  EXPECT_LE(relative_difference(*single.final_state, *split.final_state), 6e-3);
  EXPECT_GE(relative_difference(*single.final_state, *split.final_state), 1e-3);
}

/// The error of a chunk's state does not grow with its number.
TEST(PrefillAccuracy, NoDriftAlongTheChain) {
  for (const PrefillFamily& family : tests::prefill_families()) {
    if (family.name != "no decay" && family.name != "identical keys, beta .9") continue;
    const KdaInputs inputs = tests::make_family(family, 1, 1024);
    const Outputs got = run_prefill_case(inputs);
    const Outputs want =
        reference::fast(inputs.problem(), check(Contract::kKdaPrefill, inputs.problem()));
    for (std::int64_t chunk = 1; chunk < got.h->shape()[0]; ++chunk) {
      EXPECT_LE(relative_difference(tests::slot(*got.h, chunk), tests::slot(*want.h, chunk)),
                2 * family.state_limit)
          << family.name << ", chunk " << chunk;
    }
  }
}

}  // namespace
}  // namespace kda::cuda
