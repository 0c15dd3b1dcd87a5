#include "cuda/kernels/recurrent_kernel.hpp"
#include "cuda/recurrent_plan.hpp"
#include "cuda/recurrent_variants.hpp"

namespace kda::cuda {
namespace {

template <class State, bool kKeyFirst, int KP>
void run_thread(void* params) {
  kernels::recurrent_kernel<State, kKeyFirst, KP>(*static_cast<const RecurrentParams*>(params));
}

using Body = void (*)(void*);
#define KDA_BODY(State, kKeyFirst, KP) &run_thread<State, kKeyFirst, KP>,
constexpr Body kBodies[] = {KDA_RECURRENT_VARIANTS(KDA_BODY)};
#undef KDA_BODY

}  // namespace

KernelForms recurrent_kernel_forms(const RecurrentVariant& variant) {
  const std::size_t index = recurrent_index(variant.state == Dtype::kBf16,
                                            variant.layout == StateLayout::kKV, variant.padded_k);
  return {"recurrent", kBodies[index], recurrent_gpu_symbol(index)};
}

}  // namespace kda::cuda
