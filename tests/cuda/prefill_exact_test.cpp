#include "tests/cuda/prefill_call.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// What holds to the bit: results depend on nothing but the tokens up to their own, whatever the
// length of the sequence, its neighbours, the way the work is cut, and what memory held before.

namespace kda::cuda {
namespace {

using tests::KdaInputs;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void spoil(KdaInputs& inputs, std::int64_t first, std::int64_t count) {
  const auto fill = [&](Tensor& tensor) {
    const std::int64_t row = tensor.size() / tensor.shape()[1];
    for (std::int64_t i = first * row; i < (first + count) * row; ++i) tensor.store(i, kNaN);
  };
  for (Tensor* tensor : {&inputs.q, &inputs.k, &inputs.v, &inputs.g, &inputs.beta}) fill(*tensor);
}

TEST(PrefillExact, TailsAreThePrefixOfALongerRun) {
  constexpr std::array kLengths{1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129};
  const KdaInputs whole = prefill_inputs(192, 1, 1);
  const Outputs want = run_prefill_case(whole);
  KdaInputs poison = whole;
  spoil(poison, 0, 192);
  Packing packing(whole);
  for (const int length : kLengths) {
    packing.add(whole, length);
    packing.add(poison, 3);  // what follows the end in memory is NaN
  }
  const Outputs got = run_prefill_case(packing.packed());
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    EXPECT_TRUE(same_rows(got.o, packing.bounds()[2 * i], want.o, 0, kLengths[i]))
        << kLengths[i] << " tokens";
  }
  // The state after 64 tokens is the state before the second chunk.
  const auto of_64 =
      static_cast<std::int64_t>(2 * (std::ranges::find(kLengths, 64) - kLengths.begin()));
  EXPECT_TRUE(tests::same_bits(tests::slot(*got.final_state, of_64), tests::slot(*want.h, 1)));
}

/// Changes every token after `last`.
using Edit = std::function<void(KdaInputs& inputs, std::int64_t last)>;

void edit_rows(Tensor& tensor, std::int64_t last, const std::function<double(double)>& change) {
  const std::int64_t row = tensor.size() / tensor.shape()[1];
  const TensorView view = tensor.view();
  for (std::int64_t i = (last + 1) * row; i < tensor.size(); ++i) {
    tensor.store(i, change(load(view, i)));
  }
}

/// Rows after `last` from another seed.
void other_rows(Tensor& tensor, const Tensor& other, std::int64_t last) {
  const std::int64_t row = tensor.bytes() / tensor.shape()[1];
  std::copy(other.data() + (last + 1) * row, other.data() + other.bytes(),
            tensor.data() + (last + 1) * row);
}

std::vector<Edit> edits(std::int64_t T) {
  return {
      [](KdaInputs& x, std::int64_t last) {
        edit_rows(x.v, last, [](double v) { return 1e9 * v; });
      },
      [](KdaInputs& x, std::int64_t last) {
        edit_rows(x.g, last, [](double g) { return 300 * g; });
      },
      [T](KdaInputs& x, std::int64_t last) {
        const KdaInputs other = prefill_inputs(T, 1, 77);
        other_rows(x.q, other.q, last);
        other_rows(x.k, other.k, last);
        other_rows(x.beta, other.beta, last);
        edit_rows(x.k, last, [](double k) { return 3 * k; });
      },
  };
}

/// Sequences of `T` tokens, edited or cut after each of `lasts`, beside the one that is not.
void expect_causal(std::int64_t T, const std::vector<std::int64_t>& lasts) {
  const KdaInputs base = prefill_inputs(T, 1, 2);
  Packing packing(base);
  packing.add(base, T);
  std::vector<std::pair<std::int64_t, std::string>> cases;
  const std::vector<Edit> all = edits(T);
  for (const std::int64_t last : lasts) {
    for (std::size_t e = 0; e < all.size(); ++e) {
      KdaInputs edited = base;
      all[e](edited, last);
      packing.add(edited, T);
      cases.emplace_back(last, "edit " + std::to_string(e));
    }
    packing.add(base, last + 1);
    cases.emplace_back(last, "cut");
  }
  const Outputs got = run_prefill_case(packing.packed());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [last, what] = cases[i];
    EXPECT_TRUE(same_rows(got.o, packing.bounds()[i + 1], got.o, 0, last + 1))
        << what << " after token " << last << " of " << T;
  }
}

std::vector<std::int64_t> range(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = first; i < end; ++i) values.push_back(i);
  return values;
}

TEST(PrefillExact, CausalAtEveryTokenOfAChunksBeginning) { expect_causal(40, range(0, 24)); }
TEST(PrefillExact, CausalAtEveryTokenOfATailChunk) { expect_causal(87, range(62, 86)); }
TEST(PrefillExact, CausalAroundTheThirdChunk) { expect_causal(140, {126, 127, 128, 129}); }

TEST(PrefillExact, PackedSequencesAreSeparateRuns) {
  const std::array lengths{1, 64, 70, 130, 5};
  KdaInputs like = prefill_inputs(1, 2, 3);
  std::vector<KdaInputs> sources;
  Packing packing(like);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sources.push_back(prefill_inputs(lengths[i], 2, 100 + i));
    packing.add(sources.back(), lengths[i]);
  }
  const Outputs got = run_prefill_case(packing.packed());
  std::int64_t chunk = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Outputs alone = run_prefill_case(sources[i]);
    const auto n = static_cast<std::int64_t>(i);
    EXPECT_TRUE(same_rows(got.o, packing.bounds()[i], alone.o, 0, lengths[i])) << i;
    EXPECT_TRUE(tests::same_bits(tests::slot(*got.final_state, n), *alone.final_state)) << i;
    for (std::int64_t c = 0; c < alone.h->shape()[0]; ++c, ++chunk) {
      EXPECT_TRUE(tests::same_bits(tests::slot(*got.h, chunk), tests::slot(*alone.h, c))) << i;
    }
  }
}

TEST(PrefillExact, BatchRowsAreSeparateRuns) {
  KdaInputs batch =
      tests::random_inputs({.B = 2, .T = 70, .H = 1, .HV = 1, .K = 128, .V = 128}, 4, Dtype::kBf16);
  const Outputs got = run_prefill_case(batch);
  for (std::int64_t b = 0; b < 2; ++b) {
    KdaInputs one = batch;
    for (auto member :
         {&KdaInputs::q, &KdaInputs::k, &KdaInputs::v, &KdaInputs::g, &KdaInputs::beta}) {
      one.*member = tests::slot(batch.*member, b);
    }
    const Outputs alone = run_prefill_case(one);
    EXPECT_TRUE(tests::same_bits(tests::slot(got.o, b), alone.o)) << b;
    EXPECT_TRUE(tests::same_bits(tests::slot(*got.final_state, b), *alone.final_state)) << b;
  }
}

TEST(PrefillExact, SplitAtAChunkIsOneRun) {
  const KdaInputs whole = prefill_inputs(200, 1, 5);
  const Outputs want = run_prefill_case(whole);
  const Outputs first = run_prefill_case(tests::cut(whole, 0, 128));
  KdaInputs rest = tests::cut(whole, 128, 200);
  rest.initial_state = *first.final_state;
  const Outputs second = run_prefill_case(rest);
  EXPECT_TRUE(same_rows(first.o, 0, want.o, 0, 128));
  EXPECT_TRUE(same_rows(second.o, 0, want.o, 128, 72));
  EXPECT_TRUE(tests::same_bits(*second.final_state, *want.final_state));
}

TEST(PrefillExact, PadRowsAreNeutral) {
  KdaInputs padded = prefill_inputs(137, 1, 6);
  const KdaInputs bare = tests::cut(padded, 0, 100);
  for (Tensor* tensor : {&padded.k, &padded.v, &padded.g, &padded.beta}) {
    edit_rows(*tensor, 99, [](double) { return 0; });
  }
  const Outputs got = run_prefill_case(padded);
  const Outputs want = run_prefill_case(bare);
  EXPECT_TRUE(same_rows(got.o, 0, want.o, 0, 100));
  // As values: -0 = +0.
  EXPECT_EQ(to_f64(got.final_state->view()), to_f64(want.final_state->view()));
}

TEST(PrefillExact, BitsDependOnNoChoiceButThePolicy) {
  KdaInputs inputs = prefill_inputs(330, 2, 7);
  for (const bool v_first : {false, true}) {
    inputs.options.state_v_first = v_first;
    const Outputs want = run_prefill_case(inputs, {.v_columns = 64});
    for (const int columns : {32, 64}) {
      for (const std::int64_t segment : {1, 3, 0}) {
        const Outputs got =
            run_prefill_case(inputs, {.v_columns = columns, .chunks_per_segment = segment});
        EXPECT_TRUE(tests::same_bits(got, want)) << columns << " columns, segment " << segment;
      }
    }
  }
}

TEST(PrefillExact, SegmentsCutSequencesAnywhere) {
  const KdaInputs like = prefill_inputs(1, 1, 8);
  Packing packing(like);
  for (const int length : {70, 1, 200, 64, 65}) {
    packing.add(prefill_inputs(length, 1, 200 + static_cast<std::uint64_t>(length)), length);
  }
  const Outputs want = run_prefill_case(packing.packed());
  for (const std::int64_t segment : {1, 2, 5}) {
    EXPECT_TRUE(
        tests::same_bits(run_prefill_case(packing.packed(), {.chunks_per_segment = segment}), want))
        << segment;
  }
}

TEST(PrefillExact, EveryScheduleOfTheExecutor) {
  const KdaInputs inputs = prefill_inputs(150, 1, 9);
  const Outputs want = run_prefill_case(inputs);
  for (const simt::Order order : {simt::Order::kReverse, simt::Order::kRandom, simt::Order::kPct}) {
    for (const simt::CopyMode copies : {simt::CopyMode::kLate, simt::CopyMode::kEager}) {
      const Outputs got =
          run_prefill_case(inputs, {}, {.order = order, .seed = 5, .copies = copies});
      EXPECT_TRUE(tests::same_bits(got, want)) << static_cast<int>(order);
    }
  }
}

TEST(PrefillExact, MemoryBeforeDoesNotMatterAndInputsStay) {
  const KdaInputs inputs = prefill_inputs(129, 2, 10);
  const Outputs want = run_prefill_case(inputs);
  for (const int byte : {0x00, 0x7F, 0xFF}) {  // zeros, large numbers and NaN, NaN
    PrefillCall call(inputs, {.chunks_per_segment = byte == 0x7F ? 1 : 0});
    call.fill_workspace(byte);
    EXPECT_TRUE(tests::same_bits(call.run(), want)) << byte;
    EXPECT_TRUE(call.inputs_unchanged());
    EXPECT_TRUE(tests::same_bits(call.run(), want)) << byte << ", again";
  }
}

/// The reach of a NaN that the contract states: nothing in other sequences and heads; in its own,
/// no token before its own 16.
TEST(PrefillExact, NaNStaysInItsHeadAndSequence) {
  constexpr std::int64_t kAt = 90;
  const KdaInputs clean = prefill_inputs(140, 3, 11);
  const Outputs want = run_prefill_case(clean);
  const KdaInputs like = clean;
  for (auto member :
       {&KdaInputs::q, &KdaInputs::k, &KdaInputs::v, &KdaInputs::g, &KdaInputs::beta}) {
    KdaInputs bad = clean;
    Tensor& tensor = bad.*member;
    const std::int64_t width = tensor.size() / (140 * 3);
    tensor.store((kAt * 3 + 1) * width + width / 2, kNaN);
    Packing packing(like);
    packing.add(clean, 140);
    packing.add(bad, 140);
    packing.add(clean, 140);
    const Outputs got = run_prefill_case(packing.packed());
    EXPECT_TRUE(same_rows(got.o, 0, want.o, 0, 140));
    EXPECT_TRUE(same_rows(got.o, 280, want.o, 0, 140));
    EXPECT_TRUE(tests::same_bits(tests::slot(*got.final_state, 2), *want.final_state));
    EXPECT_TRUE(same_rows(got.o, 140, want.o, 0, kAt / 16 * 16)) << "before its 16 tokens";
    bool other_heads = true;
    for (std::int64_t row = 0; row < 140 * 3; ++row) {
      if (row % 3 == 1) continue;
      other_heads =
          other_heads && std::equal(want.o.data() + row * 256, want.o.data() + (row + 1) * 256,
                                    got.o.data() + (140 * 3 + row) * 256);
    }
    EXPECT_TRUE(other_heads);
  }
}

}  // namespace
}  // namespace kda::cuda
