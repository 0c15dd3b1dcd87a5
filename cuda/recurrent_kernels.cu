#include "cuda/kernels/recurrent_kernel.hpp"
#include "cuda/recurrent_variants.hpp"

namespace kda::cuda {

// Declared in recurrent_plan.hpp, which is host code.
const void* recurrent_gpu_symbol(std::size_t index) {
#define KDA_SYMBOL(State, kKeyFirst, KP) \
  reinterpret_cast<const void*>(&kernels::recurrent_kernel<State, kKeyFirst, KP>),
  static const void* const kSymbols[] = {KDA_RECURRENT_VARIANTS(KDA_SYMBOL)};
#undef KDA_SYMBOL
  return kSymbols[index];
}

}  // namespace kda::cuda
