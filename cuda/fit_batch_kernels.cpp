#include "cuda/fit_batch_plan.hpp"
#include "cuda/kernels/fit_kernel.hpp"

namespace kda::cuda {
namespace {

void run_thread(void* params) { kernels::fit_kernel(*static_cast<const FitParams*>(params)); }

}  // namespace

KernelForms fit_kernel_forms() { return {"fit", &run_thread, fit_gpu_symbol()}; }

}  // namespace kda::cuda
