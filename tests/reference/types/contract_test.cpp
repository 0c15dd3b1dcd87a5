#include "reference/types/contract.hpp"

#include "tests/reference/types/call.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace kda {
namespace {

using enum ErrorCode;
using tests::Call;
using tests::gated_call;
using tests::plain_call;
using tests::varlen_call;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// A call that breaks one rule. `message` is what the error must say, in whole or in part.
struct Broken {
  ErrorCode code;
  std::function<Call()> call;
  std::string message;
};

template <class Change>
std::function<Call()> with(Call (*make)(), Change change) {
  return [=] {
    Call call = make();
    change(call);
    return call;
  };
}

void expect_broken(Contract contract, const Broken& broken) {
  const Call call = broken.call();
  try {
    (void)check(contract, call.problem);
    ADD_FAILURE() << name(contract) << " accepted what breaks " << name(broken.code);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), broken.code) << error.what();
    EXPECT_NE(error.message().find(broken.message), std::string::npos)
        << "wanted: " << broken.message << "\ngot:    " << error.message();
    EXPECT_FALSE(error.fix().empty());
  }
}

// Rules that break in the same way for several contracts.

Broken varlen_batch() {
  return {kVarlenNeedsBatchOne,
          [] {
            Call call = varlen_call({0, 64});
            call.problem.q = call.add("q", Dtype::kBf16, {2, 64, 1, 128});
            return call;
          },
          "cu_seqlens requires B == 1 (flattened varlen batch)"};
}

std::vector<Broken> shared() {
  return {
      varlen_batch(),
      {kBetaShape,
       with(plain_call,
            [](Call& c) {
              c.problem.beta = c.add("beta", Dtype::kBf16, {1, 64});
            }),
       "beta: expected [B,T,HV] = (1, 64, 1), got (1, 64)"},
      {kBetaDtype,
       with(plain_call,
            [](Call& c) {
              c.problem.beta = c.add("beta", Dtype::kF64, {1, 64, 1});
            }),
       "got f64"},
      {kALogInvalid,
       with(gated_call, [](Call& c) { c.problem.A_log = c.add("A_log", Dtype::kBf16, {1}); }),
       "A_log: expected f32 with 1 elements, got bf16 (1,)"},
      {kALogInvalid,
       with(gated_call, [](Call& c) { c.problem.A_log = c.add("A_log", Dtype::kF32, {2}); }),
       "got f32 (2,)"},
      {kDtBiasInvalid,
       with(gated_call, [](Call& c) { c.problem.dt_bias = c.add("dt_bias", Dtype::kF32, {127}); }),
       "dt_bias: expected f32 with 128 elements, got f32 (127,)"},
      {kDtBiasInvalid,
       with(gated_call,
            [](Call& c) {
              c.problem.dt_bias = c.add("dt_bias", Dtype::kF16, {1, 128});
            }),
       "f16"},
      {kCuSeqlensShape,
       with(plain_call, [](Call& c) { c.problem.cu_seqlens = c.add("cu", Dtype::kF32, {2}); }),
       "got f32 (2,)"},
      {kCuSeqlensShape,
       with(plain_call, [](Call& c) { c.problem.cu_seqlens = c.add("cu", Dtype::kI64, {1}); }),
       "got i64 (1,)"},
      {kCuSeqlensShape,
       with(plain_call,
            [](Call& c) {
              c.problem.cu_seqlens = c.add("cu", Dtype::kI32, {1, 2});
            }),
       "got i32 (1, 2)"},
      {kCuSeqlensSpan,
       [] {
         return varlen_call({1, 64});
       },
       "got 1 to 64"},
      {kCuSeqlensSpan,
       [] {
         return varlen_call({0, 65});
       },
       "got 0 to 65"},
      {kCuSeqlensNotIncreasing,
       [] {
         return varlen_call({0, 40, 30, 64});
       },
       "40 then 30 at index 2"},
      {kCuSeqlensNotIncreasing,
       [] {
         return varlen_call({0, std::numeric_limits<std::int64_t>::max(),
                             std::numeric_limits<std::int64_t>::min(), 64});
       },
       "at index 2"},
      {kInitialStateInvalid,
       with(plain_call,
            [](Call& c) {
              c.problem.initial_state = c.add("s", Dtype::kBf16, {1, 1, 128, 128});
            }),
       "initial_state: expected f32 (1, 1, 128, 128), got bf16 (1, 1, 128, 128)"},
      {kInitialStateInvalid,
       with(plain_call,
            [](Call& c) {
              c.problem.initial_state = c.add("s", Dtype::kF32, {1, 128, 128});
            }),
       "got f32 (1, 128, 128)"},
      {kLowerBoundInvalid, with(plain_call, [](Call& c) { c.problem.lower_bound = 0.0; }), "got 0"},
      {kLowerBoundInvalid, with(plain_call, [](Call& c) { c.problem.lower_bound = -kInf; }),
       "got -inf"},
      {kLowerBoundInvalid, with(plain_call, [](Call& c) { c.problem.lower_bound = kNan; }),
       "got nan"},
      {kScaleInvalid, with(plain_call, [](Call& c) { c.problem.scale = kInf; }), "got inf"},
      {kScaleInvalid, with(plain_call, [](Call& c) { c.problem.scale = kNan; }), "got nan"},
  };
}

std::vector<Broken> prefill() {
  return {
      {kChunkSizeUnsupported, with(plain_call, [](Call& c) { c.problem.chunk_size = 32; }),
       "kda_prefill supports chunk_size=64 only, got 32"},
      {kTrainingOnlyOption, with(plain_call, [](Call& c) { c.problem.cp_context = true; }),
       "kda_prefill is the inference forward path: cp_context, and disable_recompute are "
       "training-side "
       "knobs it does not implement"},
      {kTrainingOnlyOption, with(plain_call, [](Call& c) { c.problem.disable_recompute = true; }),
       "training-side"},
      {kNegEigvalWithFusedBeta,
       with(plain_call,
            [](Call& c) {
              c.problem.allow_neg_eigval = true;
              c.problem.use_beta_sigmoid_in_kernel = true;
            }),
       "allow_neg_eigval=True requires 2*sigmoid(beta), which is not implemented by the fused beta "
       "path; "
       "pass pre-activated beta with use_beta_sigmoid_in_kernel=False"},
      {kHeadDimUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {1, 64, 1, 64});
            }),
       "expected [B,T,H,128] q/k/v, got q=(1, 64, 1, 64) v=(1, 64, 1, 128)"},
      {kHeadDimUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.v = c.add("v", Dtype::kBf16, {64, 128});
            }),
       "expected [B,T,H,128] q/k/v, got q=(1, 64, 1, 128) v=(64, 128)"},
      {kHeadDimUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.k = c.add("k", Dtype::kBf16, {1, 64, 1, 1});
            }),
       "k=(1, 64, 1, 1)"},
      {kGateParamsMissing, with(gated_call, [](Call& c) { c.problem.A_log.reset(); }),
       "got dt_bias only"},
      {kGateParamsMissing, with(gated_call, [](Call& c) { c.problem.dt_bias.reset(); }),
       "got A_log only"},
      {kRawGateDtype,
       with(gated_call,
            [](Call& c) {
              c.problem.g = c.add("g", Dtype::kF32, {1, 64, 1, 128});
            }),
       "g: expected bf16 with use_gate_in_kernel, got f32"},
      {kEmptyInput,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {1, 0, 1, 128});
            }),
       "got (1, 0, 1, 128)"},
      {kEmptyInput,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {0, 64, 1, 128});
            }),
       ""},
      {kEmptyInput,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {1, 64, 0, 128});
            }),
       ""},
      {kShapeMismatch,
       with(plain_call,
            [](Call& c) {
              c.problem.v = c.add("v", Dtype::kBf16, {1, 64, 2, 128});
            }),
       "v=(1, 64, 2, 128)"},
      {kShapeMismatch,
       with(plain_call,
            [](Call& c) {
              c.problem.g = c.add("g", Dtype::kBf16, {1, 64, 1, 1});
            }),
       "g=(1, 64, 1, 1)"},
      {kDtypeUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.k = c.add("k", Dtype::kF16, {1, 64, 1, 128});
            }),
       "k=f16"},
      {kDtypeUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.g = c.add("g", Dtype::kF16, {1, 64, 1, 128});
            }),
       "g=f16"},
      {kBetaDtype,
       with(plain_call,
            [](Call& c) {
              c.problem.beta = c.add("beta", Dtype::kF16, {1, 64, 1});
            }),
       "beta: expected bf16 or f32, got f16"},
      {kCuSeqlensSpan,
       [] {
         return varlen_call({0, 63});
       },
       "bounds from 0 to T = 64, got 0 to 63"},
      {kCuSeqlensNotIncreasing,
       [] {
         return varlen_call({0, 5, 5, 64});
       },
       "5 then 5 at index 2"},
      {kInitialStateInvalid,
       with(plain_call,
            [](Call& c) {
              c.problem.initial_state = c.add("s", Dtype::kF32, {2, 1, 128, 128});
            }),
       "got f32 (2, 1, 128, 128)"},
  };
}

/// chunk_kda and recurrent_kda.
std::vector<Broken> general() {
  return {
      {kHeadDimUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {1, 64, 1, 257});
            }),
       "K and V in 1..256, got q=(1, 64, 1, 257)"},
      {kHeadDimUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.v = c.add("v", Dtype::kBf16, {1, 64, 1, 0});
            }),
       ""},
      {kHeadDimUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.k = c.add("k", Dtype::kBf16, {64, 128});
            }),
       ""},
      {kHeadCountNotDivisible,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {1, 64, 2, 128});
              c.problem.v = c.add("v", Dtype::kBf16, {1, 64, 3, 128});
            }),
       "HV=3 H=2"},
      {kGateParamsMissing, with(gated_call, [](Call& c) { c.problem.A_log.reset(); }),
       "got neither"},
      {kLowerBoundMissing, with(gated_call, [](Call& c) { c.problem.safe_gate = true; }),
       "got none"},
      {kEmptyInput,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {1, 0, 1, 128});
            }),
       ""},
      {kEmptyInput,
       with(plain_call,
            [](Call& c) {
              c.problem.v = c.add("v", Dtype::kBf16, {1, 64, 0, 128});
            }),
       ""},
      {kEmptyInput,
       with(plain_call,
            [](Call& c) {
              c.problem.q = c.add("q", Dtype::kBf16, {1, 64, 0, 128});
            }),
       ""},
      {kShapeMismatch,
       with(plain_call,
            [](Call& c) {
              c.problem.k = c.add("k", Dtype::kBf16, {1, 64, 1, 64});
            }),
       "k=(1, 64, 1, 64)"},
      {kShapeMismatch,
       with(plain_call,
            [](Call& c) {
              c.problem.g = c.add("g", Dtype::kBf16, {1, 64, 2, 128});
            }),
       ""},
      {kDtypeUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.k = c.add("k", Dtype::kF16, {1, 64, 1, 128});
            }),
       "q=bf16 k=f16"},
      {kDtypeUnsupported,
       with(plain_call,
            [](Call& c) {
              c.problem.g = c.add("g", Dtype::kF64, {1, 64, 1, 128});
            }),
       "g=f64"},
      {kStateCountMismatch,
       with(plain_call,
            [](Call& c) {
              c.problem.initial_state = c.add("s", Dtype::kF32, {2, 1, 128, 128});
            }),
       "expected N = 1 states, got (2, 1, 128, 128)"},
      {kInitialStateInvalid,
       with(plain_call, [](Call& c) { c.problem.initial_state = c.add("s", Dtype::kF32, {}); }),
       "got f32 ()"},
      {kLowerBoundOutOfRange,
       with(gated_call,
            [](Call& c) {
              c.problem.safe_gate = true;
              c.problem.lower_bound = -5.5;
            }),
       "[-5, 0)"},
  };
}

std::vector<Broken> all_of(Contract contract) {
  std::vector<Broken> list = shared();
  const auto append = [&list](const std::vector<Broken>& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  if (contract == Contract::kKdaPrefill) {
    append(prefill());
    return list;
  }
  append(general());
  if (contract == Contract::kChunkKda) {
    append({{kChunkSizeUnsupported, with(plain_call, [](Call& c) { c.problem.chunk_size = 16; }),
             "got 16"},
            {kNegEigvalWithoutFusedBeta,
             with(plain_call, [](Call& c) { c.problem.allow_neg_eigval = true; }), ""}});
  } else {
    append({{kChunkSizeUnsupported,
             with(plain_call,
                  [](Call& c) {
                    c.problem.chunk_size = 0;
                    c.problem.return_intermediate_states = true;
                  }),
             "at least 1"}});
  }
  return list;
}

constexpr std::array kContracts{Contract::kKdaPrefill, Contract::kChunkKda,
                                Contract::kRecurrentKda};

class EveryContract : public testing::TestWithParam<Contract> {};

INSTANTIATE_TEST_SUITE_P(Contract, EveryContract, testing::ValuesIn(kContracts),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST_P(EveryContract, RefusesWhatBreaksARule) {
  for (const Broken& broken : all_of(GetParam())) expect_broken(GetParam(), broken);
}

TEST_P(EveryContract, EveryRuleIsProvokedHere) {
  std::set<ErrorCode> provoked;
  for (const Broken& broken : all_of(GetParam())) provoked.insert(broken.code);
  for (const Rule& rule : rules(GetParam())) {
    EXPECT_TRUE(provoked.contains(rule.code)) << name(rule.code) << " is not provoked";
    EXPECT_FALSE(rule.when.empty());
  }
  EXPECT_EQ(provoked.size(), rules(GetParam()).size());
}

TEST_P(EveryContract, AcceptsThePlainCalls) {
  EXPECT_NO_THROW((void)check(GetParam(), plain_call().problem));
  EXPECT_NO_THROW((void)check(GetParam(), gated_call().problem));
  EXPECT_NO_THROW((void)check(GetParam(), varlen_call({0, 1, 64}).problem));
}

TEST_P(EveryContract, GateParametersAreIgnoredWithTheGateOff) {
  Call call = plain_call();
  call.problem.A_log = call.add("A_log", Dtype::kF64, {7});
  call.problem.dt_bias = call.add("dt_bias", Dtype::kI32, {7});
  const Semantics s = check(GetParam(), call.problem);
  EXPECT_EQ(s.gate, GateForm::kLogDecay);
}

/// Two rules broken at once, the earlier named first.
TEST(ContractOrder, TheFirstBrokenRuleIsRaised) {
  for (const Contract contract : kContracts) {
    Call call = plain_call();
    call.problem.scale = kNan;
    call.problem.lower_bound = 1.0;
    expect_broken(contract, {kLowerBoundInvalid, [&call] { return call; }, ""});
    call.problem.beta = call.add("beta", Dtype::kI32, {3});
    expect_broken(contract, {kBetaShape, [&call] { return call; }, ""});
    call.problem.g = call.add("g", Dtype::kI32, {1, 64, 1, 128});
    expect_broken(contract, {kDtypeUnsupported, [&call] { return call; }, ""});
    call.problem.q = call.add("q", Dtype::kI32, {1, 64, 1, 300});
    expect_broken(contract, {kHeadDimUnsupported, [&call] { return call; }, ""});
  }
}

TEST(ContractOrder, TablesAreInTheSpecifiedOrder) {
  const auto order = [](Contract contract) {
    std::vector<ErrorCode> codes;
    for (const Rule& rule : rules(contract)) codes.push_back(rule.code);
    return codes;
  };
  EXPECT_EQ(order(Contract::kKdaPrefill), (std::vector{kChunkSizeUnsupported,
                                                       kTrainingOnlyOption,
                                                       kNegEigvalWithFusedBeta,
                                                       kHeadDimUnsupported,
                                                       kVarlenNeedsBatchOne,
                                                       kGateParamsMissing,
                                                       kRawGateDtype,
                                                       kEmptyInput,
                                                       kShapeMismatch,
                                                       kDtypeUnsupported,
                                                       kBetaShape,
                                                       kBetaDtype,
                                                       kALogInvalid,
                                                       kDtBiasInvalid,
                                                       kCuSeqlensShape,
                                                       kCuSeqlensSpan,
                                                       kCuSeqlensNotIncreasing,
                                                       kInitialStateInvalid,
                                                       kLowerBoundInvalid,
                                                       kScaleInvalid}));
  EXPECT_EQ(order(Contract::kChunkKda), (std::vector{kChunkSizeUnsupported,
                                                     kNegEigvalWithoutFusedBeta,
                                                     kHeadDimUnsupported,
                                                     kHeadCountNotDivisible,
                                                     kVarlenNeedsBatchOne,
                                                     kGateParamsMissing,
                                                     kLowerBoundMissing,
                                                     kEmptyInput,
                                                     kShapeMismatch,
                                                     kDtypeUnsupported,
                                                     kBetaShape,
                                                     kBetaDtype,
                                                     kALogInvalid,
                                                     kDtBiasInvalid,
                                                     kCuSeqlensShape,
                                                     kCuSeqlensSpan,
                                                     kCuSeqlensNotIncreasing,
                                                     kStateCountMismatch,
                                                     kInitialStateInvalid,
                                                     kLowerBoundInvalid,
                                                     kLowerBoundOutOfRange,
                                                     kScaleInvalid}));
}

TEST(ContractMeaning, AllowNegEigvalWithReadyBetaChangesNothingForPrefill) {
  Call call = plain_call();
  call.problem.allow_neg_eigval = true;
  EXPECT_EQ(check(Contract::kKdaPrefill, call.problem).beta, BetaForm::kReady);
}

TEST(ContractMeaning, GateFormsFollowTheBound) {
  Call call = gated_call();
  EXPECT_EQ(check(Contract::kChunkKda, call.problem).gate, GateForm::kSoftplus);
  call.problem.lower_bound = -5.0;
  const Semantics s = check(Contract::kChunkKda, call.problem);
  EXPECT_EQ(s.gate, GateForm::kLowerBound);
  EXPECT_EQ(s.lower_bound, -5.0);
}

TEST(ContractMeaning, BetaForms) {
  Call call = plain_call();
  call.problem.use_beta_sigmoid_in_kernel = true;
  EXPECT_EQ(check(Contract::kChunkKda, call.problem).beta, BetaForm::kLogit);
  call.problem.allow_neg_eigval = true;
  EXPECT_EQ(check(Contract::kRecurrentKda, call.problem).beta, BetaForm::kDoubledLogit);
}

TEST(ContractMeaning, SequencesAndChunksOfAPackedBatch) {
  const Call call = varlen_call({0, 0, 1, 34, 34, 60});
  Problem p = call.problem;
  p.chunk_size = 32;
  const Semantics s = check(Contract::kChunkKda, p);
  ASSERT_EQ(s.N(), 5);
  EXPECT_EQ(s.num_chunks, 0 + 1 + 2 + 0 + 1);
  EXPECT_EQ(s.sequences[2].first_chunk, 1);
  EXPECT_EQ(s.sequences[4].first_chunk, 3);
  EXPECT_EQ(s.sequences[2].length(), 33);
  EXPECT_EQ(s.state_shape(s.N()), (Shape{5, 1, 128, 128}));
}

TEST(ContractMeaning, BatchRowsAreSequencesWithoutCuSeqlens) {
  Call call;
  Problem& p = call.problem;
  p.q = call.add("q", Dtype::kF32, {3, 7, 2, 5});
  p.k = call.add("k", Dtype::kF32, {3, 7, 2, 5});
  p.v = call.add("v", Dtype::kF32, {3, 7, 4, 6});
  p.g = call.add("g", Dtype::kF16, {3, 7, 4, 5});
  p.beta = call.add("beta", Dtype::kBf16, {3, 7, 4});
  p.state_v_first = true;
  p.scale = 2.0;
  const Semantics s = check(Contract::kRecurrentKda, p);
  EXPECT_EQ(s.N(), 3);
  EXPECT_EQ(s.sequences[2].b, 2);
  EXPECT_EQ(s.scale, 2.0);
  EXPECT_EQ(s.o_shape(), (Shape{3, 7, 4, 6}));
  EXPECT_EQ(s.state_shape(3), (Shape{3, 4, 6, 5}));
  p.scale.reset();
  EXPECT_DOUBLE_EQ(check(Contract::kRecurrentKda, p).scale, 1 / std::sqrt(5.0));
}

TEST(ContractMeaning, NoTokensAreFineWithCuSeqlens) {
  Call call;
  Problem& p = call.problem;
  p.q = call.add("q", Dtype::kBf16, {1, 0, 1, 8});
  p.k = call.add("k", Dtype::kBf16, {1, 0, 1, 8});
  p.v = call.add("v", Dtype::kBf16, {1, 0, 1, 8});
  p.g = call.add("g", Dtype::kBf16, {1, 0, 1, 8});
  p.beta = call.add("beta", Dtype::kBf16, {1, 0, 1});
  p.cu_seqlens = call.add("cu_seqlens", Dtype::kI32, {3});
  EXPECT_EQ(check(Contract::kChunkKda, p).N(), 2);
}

TEST(ContractMeaning, HugeChunkSizeDoesNotOverflow) {
  Call call = plain_call();
  call.problem.chunk_size = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(check(Contract::kRecurrentKda, call.problem).num_chunks, 1);
}

TEST(ContractMeaning, StridedCuSeqlensAreReadByStride) {
  Call call = varlen_call({0, 99, 30, 99, 64, 99});
  call.problem.cu_seqlens->shape = {3};
  call.problem.cu_seqlens->strides = {2};
  const Semantics s = check(Contract::kKdaPrefill, call.problem);
  ASSERT_EQ(s.N(), 2);
  EXPECT_EQ(s.sequences[1].begin, 30);
}

TEST(ContractNames, RoundTrip) {
  for (const Contract contract : kContracts) EXPECT_EQ(find_contract(name(contract)), contract);
  EXPECT_FALSE(find_contract("fit"));
}

}  // namespace
}  // namespace kda
