#include "harness/case/case.hpp"

#include "reference/types/contract.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kda::harness {
namespace {

constexpr auto kOps = std::to_array<std::pair<Op, std::string_view>>({
    {Op::kKdaPrefill, "kda_prefill"},
    {Op::kChunkKda, "chunk_kda"},
    {Op::kRecurrentKda, "recurrent_kda"},
    {Op::kFit, "fit"},
    {Op::kPredict, "predict"},
});

}  // namespace

std::string_view name(Op op) noexcept { return kOps[static_cast<std::size_t>(op)].second; }

std::optional<Op> find_op(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kOps, name, &std::pair<Op, std::string_view>::second);
  return found == kOps.end() ? std::nullopt : std::optional(found->first);
}

std::optional<Contract> contract_of(Op op) noexcept { return find_contract(name(op)); }

Problem KdaCase::problem() const {
  const auto optional_view = [this](const char* name) -> std::optional<TensorView> {
    const auto found = inputs.find(name);
    if (found == inputs.end()) return std::nullopt;
    return found->second.view();
  };
  const auto view = [&](const char* name) { return optional_view(name).value_or(TensorView{}); };
  Problem problem = options;
  problem.q = view("q");
  problem.k = view("k");
  problem.v = view("v");
  problem.g = view("g");
  problem.beta = view("beta");
  problem.A_log = optional_view("A_log");
  problem.dt_bias = optional_view("dt_bias");
  problem.initial_state = optional_view("initial_state");
  problem.cu_seqlens = optional_view("cu_seqlens");
  return problem;
}

std::optional<Semantics> accepted(const KdaCase& kda_case) {
  try {
    return check(kda_case.contract, kda_case.problem());
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace kda::harness
