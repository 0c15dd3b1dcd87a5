#include "cuda/recurrent.hpp"
#include "tests/cuda/recurrent_call.hpp"

#include <cmath>

#include <gtest/gtest.h>

// State pools in place: slots, strides, storage in bf16.

namespace kda::cuda {
namespace {

using tests::KdaInputs;

KdaInputs decode_inputs(std::int64_t B, bool v_first) {
  KdaInputs inputs = tests::random_inputs({.B = B, .T = 2, .H = 1, .HV = 2, .K = 24, .V = 40}, 21);
  inputs.options.state_v_first = v_first;
  inputs.options.return_intermediate_states = false;
  inputs.options.output_final_state = false;
  return inputs;
}

/// What each sequence must give, from its slot of the pool.
Outputs separate(const KdaInputs& inputs, const Tensor& states) {
  KdaInputs alone = inputs;
  alone.options.output_final_state = true;
  alone.initial_state = states;
  return run_recurrent_cpu(Contract::kRecurrentKda, alone.problem(), {});
}

TEST(RecurrentPool, UpdatesTheNamedSlotsOnly) {
  for (const bool v_first : {false, true}) {
    const KdaInputs inputs = decode_inputs(3, v_first);
    RecurrentCall call(inputs);
    call.make_pool(5, Dtype::kF32);
    const Tensor before = call.pool();
    call.set_slots({4, -1, 1});
    call.run();

    Tensor states(Dtype::kF32, inputs.semantics().state_shape(3));
    const std::int64_t size = states.size() / 3;
    const auto copy = [&](std::int64_t to, const Tensor& from, std::int64_t slot) {
      for (std::int64_t i = 0; i < size; ++i) {
        states.store(to * size + i, from.as<float>()[slot * size + i]);
      }
    };
    copy(0, before, 4);
    copy(2, before, 1);
    const Outputs want = separate(inputs, states);
    const Tensor after = call.pool();
    EXPECT_TRUE(tests::same_bits(tests::slot(after, 4), tests::slot(*want.final_state, 0)));
    EXPECT_TRUE(tests::same_bits(tests::slot(after, 1), tests::slot(*want.final_state, 2)));
    for (const std::int64_t other : {0, 2, 3}) {
      EXPECT_TRUE(tests::same_bits(tests::slot(after, other), tests::slot(before, other)));
    }
    const Tensor o = call.o();
    EXPECT_TRUE(tests::same_bits(tests::slot(o, 0), tests::slot(want.o, 0)));
    EXPECT_TRUE(tests::same_bits(tests::slot(o, 2), tests::slot(want.o, 2)));
    // Slot -1: the output row is as it was allocated.
    const Tensor untouched = tests::slot(o, 1);
    for (std::int64_t i = 0; i < untouched.bytes(); ++i) {
      ASSERT_EQ(untouched.data()[i], std::byte{0xFF}) << i;
    }
  }
}

TEST(RecurrentPool, WithoutSlotsSequenceNHasSlotN) {
  const KdaInputs inputs = decode_inputs(3, false);
  RecurrentCall call(inputs);
  call.make_pool(3, Dtype::kF32);
  const Outputs want = separate(inputs, call.pool());
  call.run();
  EXPECT_TRUE(tests::same_bits(call.pool(), *want.final_state));
  EXPECT_TRUE(tests::same_bits(call.o(), want.o));
}

TEST(RecurrentPool, StoresBf16RoundedOnce) {
  for (const bool v_first : {false, true}) {
    const KdaInputs inputs = decode_inputs(2, v_first);
    RecurrentCall call(inputs);
    call.make_pool(2, Dtype::kBf16);
    Tensor widened(Dtype::kF32, call.pool().shape());
    for (std::int64_t i = 0; i < widened.size(); ++i) {
      widened.store(i, load(call.pool().view(), i));
    }
    const Outputs want = separate(inputs, widened);
    call.run();
    // Pieces of 8 elements are spread over other lanes than pieces of 4, so sums differ in order.
    EXPECT_LE(tests::relative_error(call.o(), want.o), 2e-6) << "the state is f32 while at work";
    const Tensor after = call.pool();
    for (std::int64_t i = 0; i < after.size(); ++i) {
      const float exact = want.final_state->as<float>()[i];
      ASSERT_LE(std::abs(to_float(after.as<Bf16>()[i]) - exact), 0x1.01p-8 * std::abs(exact) + 1e-6)
          << i;
    }
  }
}

TEST(RecurrentPool, HonoursStridesOfPoolBetaAndSlots) {
  const KdaInputs inputs = decode_inputs(3, false);
  RecurrentCall plain(inputs);
  plain.make_pool(4, Dtype::kF32);
  plain.set_slots({2, 0, 3});
  RecurrentCall strided(inputs);
  strided.make_pool(4, Dtype::kF32);
  strided.set_slots({2, 0, 3});
  strided.spread_pool(2, 24);  // rows and heads stay multiples of 16 bytes
  strided.spread_beta(3);
  strided.spread_slots(2);
  RecurrentCall ragged(inputs);
  ragged.make_pool(4, Dtype::kF32);
  ragged.set_slots({2, 0, 3});
  ragged.spread_pool(1, 7);  // and here they do not
  plain.run();
  strided.run();
  ragged.run();
  EXPECT_TRUE(tests::same_bits(plain.pool(), strided.pool()));
  EXPECT_TRUE(tests::same_bits(plain.o(), strided.o()));
  EXPECT_TRUE(tests::same_bits(plain.pool(), ragged.pool()));
  EXPECT_TRUE(tests::same_bits(plain.o(), ragged.o()));
}

}  // namespace
}  // namespace kda::cuda
