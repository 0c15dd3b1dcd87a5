#include "cuda/kernels/prefill_chain.hpp"
#include "cuda/kernels/prefill_factors.hpp"
#include "cuda/prefill_variants.hpp"

namespace kda::cuda {

// Declared in prefill_plan.hpp, which is host code.
const void* prefill_factors_symbol(std::size_t index) {
#define KDA_SYMBOL(policy) \
  reinterpret_cast<const void*>(&kernels::prefill_factors_kernel<PrefillPolicy::policy>),
  static const void* const kSymbols[] = {KDA_PREFILL_POLICIES(KDA_SYMBOL)};
#undef KDA_SYMBOL
  return kSymbols[index];
}

const void* prefill_chain_symbol(std::size_t index) {
#define KDA_SYMBOL(policy, columns) \
  reinterpret_cast<const void*>(&kernels::prefill_chain_kernel<PrefillPolicy::policy, columns>),
  static const void* const kSymbols[] = {KDA_PREFILL_CHAINS(KDA_SYMBOL)};
#undef KDA_SYMBOL
  return kSymbols[index];
}

}  // namespace kda::cuda
