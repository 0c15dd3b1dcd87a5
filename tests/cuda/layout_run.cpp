#include "tests/cuda/layout_run.hpp"

#include "tests/cuda/layout_kernels.hpp"

#include <cstddef>

namespace kda::cuda::layout {
namespace {

using device::Global;

template <auto kKernel, class Params>
void thread_body(void* params) {
  kKernel(*static_cast<const Params*>(params));
}

template <auto kKernel, class Params>
void launch(Device& device, LayoutKernel which, Params params) {
  const KernelForms forms{"layout", &thread_body<kKernel, Params>, layout_gpu_symbol(which)};
  device.launch(forms, {{1, 1, 1}, {32, 1, 1}, 0}, &params);
}

template <class T>
Global<T> upload(Device& device, const char* name, const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  std::byte* data = device.allocate(name, bytes);
  device.copy_to_device(data, values.data(), bytes);
  return Global<std::byte>{data}.as<T>();
}

template <class T>
std::vector<T> fetch(Device& device, Global<T> data, std::size_t count) {
  std::vector<T> values(count);
  device.copy_to_host(values.data(), data.raw, count * sizeof(T));
  return values;
}

template <unsigned N, bool kTransposed>
std::vector<std::uint32_t> run_one_ldmatrix(Device& device, LayoutKernel which) {
  const Global<std::uint32_t> out = upload(device, "out", std::vector<std::uint32_t>(32 * N));
  const LdmatrixParams params{upload(device, "rows", ldmatrix_rows()), out};
  launch<&ldmatrix_kernel<N, kTransposed>>(device, which, params);
  return fetch(device, out, 32 * N);
}

}  // namespace

std::vector<float> run_mma(Device& device, Half half, const MmaOperandSet& set) {
  const std::size_t count = MmaOperandSet::kRuns * 32 * 4;
  const Global<float> d = upload(device, "d", std::vector<float>(count, -1.0F));
  const MmaParams params{upload(device, "a", set.a), upload(device, "b", set.b), d,
                         MmaOperandSet::kRuns};
  if (half == Half::kBf16) {
    launch<&mma_kernel<true>>(device, LayoutKernel::kMmaBf16, params);
  } else {
    launch<&mma_kernel<false>>(device, LayoutKernel::kMmaF16, params);
  }
  return fetch(device, d, count);
}

std::vector<std::uint32_t> run_ldmatrix(Device& device, unsigned matrices, bool transposed) {
  using enum LayoutKernel;
  if (transposed) {
    return matrices == 1   ? run_one_ldmatrix<1, true>(device, kLdmatrixTrans1)
           : matrices == 2 ? run_one_ldmatrix<2, true>(device, kLdmatrixTrans2)
                           : run_one_ldmatrix<4, true>(device, kLdmatrixTrans4);
  }
  return matrices == 1   ? run_one_ldmatrix<1, false>(device, kLdmatrix1)
         : matrices == 2 ? run_one_ldmatrix<2, false>(device, kLdmatrix2)
                         : run_one_ldmatrix<4, false>(device, kLdmatrix4);
}

std::vector<std::uint32_t> run_movmatrix(Device& device) {
  const auto set = movmatrix_operands();
  const Global<std::uint32_t> out =
      upload(device, "out", std::vector<std::uint32_t>(set.in.size()));
  const MovmatrixParams params{upload(device, "in", set.in), out, MovmatrixOperandSet::kRuns};
  launch<&movmatrix_kernel>(device, LayoutKernel::kMovmatrix, params);
  return fetch(device, out, set.in.size());
}

std::vector<LayoutResult> run_all_layouts(Device& device) {
  std::vector<LayoutResult> results;
  for (const Half half : {Half::kBf16, Half::kF16}) {
    results.push_back({half == Half::kBf16 ? "mma bf16" : "mma f16",
                       check_mma(run_mma(device, half, mma_operands(half)))});
  }
  for (const bool transposed : {false, true}) {
    for (const unsigned matrices : {1U, 2U, 4U}) {
      results.push_back(
          {"ldmatrix x" + std::to_string(matrices) + (transposed ? ".trans" : ""),
           check_ldmatrix(matrices, transposed, run_ldmatrix(device, matrices, transposed))});
    }
  }
  results.push_back({"movmatrix", check_movmatrix(run_movmatrix(device))});
  return results;
}

}  // namespace kda::cuda::layout
