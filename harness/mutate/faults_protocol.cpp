#include "harness/mutate/mutant.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <utility>

// Implementations whose values are right but that break the rules of being called.

namespace kda::harness::mutate {
namespace {

const KdaCase& inputs_of(const Case& test_case) { return std::get<KdaCase>(test_case.inputs); }

Outputs right_answer(const Case& test_case) {
  return run(honest(Mutant::Form::kTokens), inputs_of(test_case), Precision::kWorking);
}

using Change = void (*)(Outputs& out, const Case& test_case, int call);

/// The right answer, changed; `call` counts from 0.
Implementation changing(const char* name, const char* what, Change change) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  return {.name = name,
          .description = what,
          .ops = {Op::kKdaPrefill, Op::kChunkKda, Op::kRecurrentKda},
          .limit = {},
          .run = [change, calls](const Case& test_case, const KernelSettings&) -> Answer {
            Outputs out = right_answer(test_case);
            change(out, test_case, (*calls)++);
            return out;
          },
          .by_head = false};
}

/// o with its last two axes swapped.
void swap_axes(Outputs& out, const Case&, int) {
  Shape shape = out.o.shape();
  std::swap(shape[2], shape[3]);
  out.o = Tensor(out.o.dtype(), shape);
}

void whole_numbers(Outputs& out, const Case&, int) { out.o = Tensor(Dtype::kI32, out.o.shape()); }

void no_state(Outputs& out, const Case&, int) { out.final_state.reset(); }

void one_row_short(Outputs& out, const Case&, int) {
  Shape shape = out.o.shape();
  if (shape[1] > 0) --shape[1];
  out.o = Tensor(out.o.dtype(), shape);
}

/// The last row, 1% up and down in turn: honest errors of a row are of that size.
void unsteady_row(Outputs& out, const Case&, int call) {
  const std::int64_t V = out.o.shape().back();
  for (std::int64_t i = std::max<std::int64_t>(out.o.size() - V, 0); i < out.o.size(); ++i) {
    out.o.store(i, load(out.o.view(), i) * (call % 2 == 0 ? 1.01 : 0.99));
  }
}

/// Every 5th answer is zero.
void sometimes_zero(Outputs& out, const Case&, int call) {
  if (call % 5 == 4) out.o = Tensor(out.o.dtype(), out.o.shape());
}

/// What a kernel does that works in place on its input.
void overwrite_value(Outputs& out, const Case& test_case, int) {
  const Tensor& v = inputs_of(test_case).inputs.at("v");
  if (v.bytes() == out.o.bytes() && v.bytes() > 0) {
    std::copy_n(out.o.data(), v.bytes(), const_cast<Tensor&>(v).data());
  }
}

void scale_beta(Outputs&, const Case& test_case, int) {
  Tensor& beta = const_cast<Tensor&>(inputs_of(test_case).inputs.at("beta"));
  if (beta.size() > 0) beta.store(0, load(beta.view(), 0) + 0.5);
}

/// Answers what the contract refuses.
Implementation accepting() {
  Implementation all =
      changing("accepts_everything", "no check of the contract", [](Outputs&, const Case&, int) {});
  all.run = [](const Case& test_case, const KernelSettings&) -> Answer {
    try {
      return right_answer(test_case);
    } catch (const Error&) {
      return Outputs{};
    }
  };
  return all;
}

Implementation throwing(const char* name, const char* what, void (*raise)(const Case&)) {
  Implementation faulty = changing(name, what, [](Outputs&, const Case&, int) {});
  faulty.run = [raise](const Case& test_case, const KernelSettings&) -> Answer {
    raise(test_case);
    return right_answer(test_case);
  };
  return faulty;
}

/// One code for whatever is wrong.
void wrong_code(const Case& test_case) {
  if (!accepted(inputs_of(test_case))) throw Error(ErrorCode::kShapeMismatch, "something is wrong");
}

void refuse_states(const Case& test_case) {
  if (inputs_of(test_case).inputs.contains("initial_state")) {
    throw Error(ErrorCode::kInitialStateInvalid, "no initial state, please");
  }
}

void refuse_empty(const Case& test_case) {
  if (inputs_of(test_case).inputs.contains("cu_seqlens")) {
    throw std::runtime_error("an exception that is no refusal");
  }
}

void executor_fault(const Case&) {
  throw Error(ErrorCode::kExecutorFault, "kernel k block (0,0,0): a race");
}

}  // namespace

std::vector<Implementation> protocol_mutants() {
  return {
      changing("shape_axes_swapped", "o as [B,T,V,HV]", swap_axes),
      changing("shape_one_row_short", "o with T-1 rows", one_row_short),
      changing("dtype_integer", "o as 32-bit integers", whole_numbers),
      changing("state_missing", "no final state", no_state),
      changing("h_missing", "no h", [](Outputs& out, const Case&, int) { out.h.reset(); }),
      changing("h_unasked", "an h that nobody asked for",
               [](Outputs& out, const Case&, int) {
                 if (!out.h) out.h = Tensor(Dtype::kF32, {1});
               }),
      changing("nothing_returned", "no tensors at all",
               [](Outputs& out, const Case&, int) { out = Outputs{}; }),
      changing("unsteady_row", "one row 1% up and down from call to call", unsteady_row),
      changing("unsteady_zero", "every fifth answer is 0", sometimes_zero),
      changing("value_overwritten", "o written over v", overwrite_value),
      changing("beta_changed", "beta changed in place", scale_beta),
      accepting(),
      throwing("wrong_code", "refuses with one code for everything", wrong_code),
      throwing("refuses_states", "refuses initial states", refuse_states),
      throwing("throws_on_varlen", "an exception for packed batches", refuse_empty),
      throwing("executor_fault", "the executor reports a fault", executor_fault),
  };
}

}  // namespace kda::harness::mutate
