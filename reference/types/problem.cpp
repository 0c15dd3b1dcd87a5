#include "reference/types/problem.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kda {
namespace {

constexpr auto kContracts = std::to_array<std::pair<Contract, std::string_view>>({
    {Contract::kKdaPrefill, "kda_prefill"},
    {Contract::kChunkKda, "chunk_kda"},
    {Contract::kRecurrentKda, "recurrent_kda"},
});

}  // namespace

std::string_view name(Contract contract) noexcept {
  return std::ranges::find(kContracts, contract, &std::pair<Contract, std::string_view>::first)
      ->second;
}

std::optional<Contract> find_contract(std::string_view name) noexcept {
  for (const auto& [contract, contract_name] : kContracts) {
    if (contract_name == name) return contract;
  }
  return std::nullopt;
}

}  // namespace kda
