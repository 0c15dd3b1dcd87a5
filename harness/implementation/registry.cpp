#include "harness/implementation/implementation.hpp"
#include "harness/implementation/registry_cuda.hpp"
#include "harness/implementation/registry_fit.hpp"
#include "reference/chunked.hpp"
#include "reference/fast.hpp"
#include "reference/peer_prefill.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kda::harness {
namespace {

const std::vector<Op> kKdaOps{Op::kKdaPrefill, Op::kChunkKda, Op::kRecurrentKda};

using Run = std::function<Answer(const Case&, const KernelSettings&)>;

/// A function on an accepted KDA call, as something that answers to cases: the contract comes
/// first.
template <class Compute>
Run kda(Compute compute) {
  return [compute](const Case& test_case, const KernelSettings&) -> Answer {
    const auto& kda_case = std::get<KdaCase>(test_case.inputs);
    const Problem problem = kda_case.problem();
    const Semantics semantics = check(kda_case.contract, problem);
    return compute(problem, semantics);
  };
}

/// `compute` for KDA ops, `numbers` for fit and predict.
Run either(Run compute, Answer (*numbers)(const Case&)) {
  return [compute = std::move(compute), numbers](const Case& test_case,
                                                 const KernelSettings& settings) {
    return contract_of(test_case.op) ? compute(test_case, settings) : numbers(test_case);
  };
}

std::vector<Op> and_fit(std::vector<Op> ops) {
  ops.push_back(Op::kFit);
  ops.push_back(Op::kPredict);
  return ops;
}

std::vector<Implementation> make_registry() {
  std::vector<Implementation> all;
  all.push_back({.name = "reference",
                 .description = "f64 token recurrence; fit by Householder QR",
                 .ops = and_fit(kKdaOps),
                 .limit = {},
                 .run = either(kda(reference::recurrent), answer_by_qr),
                 .by_head = true});
  all.push_back({.name = "chunked",
                 .description = "f64 chunked (WY) form with Eigen; fit by SVD",
                 .ops = and_fit(kKdaOps),
                 .limit = {},
                 .run = either(kda([](const Problem& p, const Semantics& s) {
                                 return reference::chunked(p, s);
                               }),
                               answer_by_svd),
                 .by_head = true});
  all.push_back(
      {.name = "fast",
       .description = "f64 token recurrence, blocked, threaded and vectorised",
       .ops = kKdaOps,
       .limit = {},
       .run = kda([](const Problem& p, const Semantics& s) { return reference::fast(p, s); }),
       .by_head = true});
  all.push_back(
      {.name = "peer-f32",
       .description = "f32 token recurrence, o in the dtype of v: what a careful kernel gives",
       .ops = kKdaOps,
       .limit = {},
       .run = kda(reference::recurrent_f32),
       .by_head = true,
       .formats = f32_formats()});
  all.push_back({.name = "peer-bf16",
                 .description = "chunks of 64 with 16-bit operands: the rounding of cuda-prefill",
                 .ops = {Op::kKdaPrefill},
                 .limit = {},
                 .run = kda([](const Problem& p, const Semantics& s) {
                   return reference::peer_prefill(p, s);
                 }),
                 .by_head = true,
                 .formats = prefill_formats()});
  for (Implementation& kernel : cuda_implementations()) all.push_back(std::move(kernel));
  return all;
}

}  // namespace

std::span<const Implementation> all_implementations() {
  static const std::vector<Implementation> registry = make_registry();
  return registry;
}

const Implementation& find_implementation(std::string_view name) {
  const auto all = all_implementations();
  const auto found = std::ranges::find(all, name, &Implementation::name);
  if (found != all.end()) return *found;
  std::string known;
  for (const Implementation& implementation : all)
    known += (known.empty() ? "" : ", ") + implementation.name;
  throw Error(ErrorCode::kImplementationUnknown,
              "--impl: expected one of " + known + ", got " + std::string(name));
}

std::string oracle_name(std::string_view name) { return "kdacheck:" + std::string(name); }

std::optional<std::string> unsupported(const Implementation& implementation,
                                       const Case& test_case) {
  if (std::ranges::find(implementation.ops, test_case.op) == implementation.ops.end()) {
    return implementation.name + " does not serve " + std::string(name(test_case.op));
  }
  if (test_case.expected && test_case.oracle == oracle_name(implementation.name)) {
    return "the expected values were made by " + implementation.name + " itself";
  }
  return implementation.limit ? implementation.limit(test_case) : std::nullopt;
}

}  // namespace kda::harness
