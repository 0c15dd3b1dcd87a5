#include "cuda/kernels/prefill_chain.hpp"
#include "cuda/kernels/prefill_factors.hpp"
#include "cuda/prefill_plan.hpp"
#include "cuda/prefill_variants.hpp"

namespace kda::cuda {
namespace {

template <PrefillPolicy kPolicy>
void run_factors(void* params) {
  kernels::prefill_factors_kernel<kPolicy>(*static_cast<const PrefillParams*>(params));
}

template <PrefillPolicy kPolicy, int kColumns>
void run_chain(void* params) {
  kernels::prefill_chain_kernel<kPolicy, kColumns>(*static_cast<const PrefillParams*>(params));
}

/// What host code needs to know of a compiled kernel.
struct Compiled {
  void (*body)(void*);
  std::size_t shared_bytes;
};

#define KDA_FACTORS(policy)             \
  {&run_factors<PrefillPolicy::policy>, \
   static_cast<std::size_t>(kernels::FactorMemory<PrefillPolicy::policy>::kBytes)},
constexpr Compiled kFactors[] = {KDA_PREFILL_POLICIES(KDA_FACTORS)};
#undef KDA_FACTORS

#define KDA_CHAIN(policy, columns)             \
  {&run_chain<PrefillPolicy::policy, columns>, \
   std::size_t{kernels::StageFormat<PrefillPolicy::policy>::shared_bytes(columns)}},
constexpr Compiled kChains[] = {KDA_PREFILL_CHAINS(KDA_CHAIN)};
#undef KDA_CHAIN

std::size_t factors_index(PrefillPolicy policy) { return static_cast<std::size_t>(policy); }

std::size_t chain_index(PrefillPolicy policy, int v_columns) {
  return prefill_chain_index(factors_index(policy), v_columns);
}

}  // namespace

std::size_t prefill_blob_bytes(PrefillPolicy policy) noexcept {
  switch (policy) {
    case PrefillPolicy::kMixed: return PrefillFormat<PrefillPolicy::kMixed>::kBlobBytes;
    case PrefillPolicy::kSplit: return PrefillFormat<PrefillPolicy::kSplit>::kBlobBytes;
    case PrefillPolicy::kBf16: return PrefillFormat<PrefillPolicy::kBf16>::kBlobBytes;
  }
  return 0;
}

KernelForms prefill_factors_forms(PrefillPolicy policy) {
  const std::size_t index = factors_index(policy);
  return {"prefill_factors", kFactors[index].body, prefill_factors_symbol(index)};
}

KernelForms prefill_chain_forms(PrefillPolicy policy, int v_columns) {
  const std::size_t index = chain_index(policy, v_columns);
  return {"prefill_chain", kChains[index].body, prefill_chain_symbol(index)};
}

std::size_t prefill_factors_shared_bytes(PrefillPolicy policy) {
  return kFactors[factors_index(policy)].shared_bytes;
}

std::size_t prefill_chain_shared_bytes(PrefillPolicy policy, int v_columns) {
  return kChains[chain_index(policy, v_columns)].shared_bytes;
}

}  // namespace kda::cuda
