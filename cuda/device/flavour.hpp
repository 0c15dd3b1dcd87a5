#pragma once

// NOLINTBEGIN(bugprone-macro-parentheses): arguments are types and names

// A kernel is written once, in the primitives of cuda/device, and compiled twice: by nvcc, where a
// primitive is its PTX instruction, and by the host's compiler, where it calls the executor
// (cuda/simt). The two meanings live in inline namespaces of different names, so that both can be
// linked into one program. Structs that cross from host code to kernels stay outside.

#if defined(__CUDACC__)
#define KDA_FLAVOUR dev
#define KDA_DEVICE __device__ __forceinline__
/// Head of a kernel whose blocks have at most `threads` threads: KDA_KERNEL(128) name(Args args).
#define KDA_KERNEL(threads) __global__ void __launch_bounds__(threads)
/// The same, with registers limited so that `blocks` blocks fit on a multiprocessor.
#define KDA_KERNEL_RESIDENT(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#define KDA_UNROLL _Pragma("unroll")
#define KDA_NO_UNROLL _Pragma("unroll 1")
/// `name`: a Shared<T> of n elements, n known at compile time.
#define KDA_SHARED(T, name, n)                \
  __shared__ __align__(16) T name##_array[n]; \
  const ::kda::cuda::device::Shared<T> name { name##_array }
#else
#define KDA_FLAVOUR cpu
#define KDA_DEVICE inline
#define KDA_KERNEL(threads) inline void
#define KDA_KERNEL_RESIDENT(threads, blocks) inline void
#define KDA_UNROLL
#define KDA_NO_UNROLL
#define KDA_SHARED(T, name, n)                                                         \
  static char name##_key;                                                              \
  const ::kda::cuda::device::Shared<T> name {                                          \
    static_cast<T*>(::kda::cuda::simt::shared_static(&name##_key, sizeof(T) * (n), 16, \
                                                     ::kda::cuda::simt::Site::here())) \
  }
#endif

/// Architecture that a kernel is being compiled for, as nvcc counts (900: sm_90); 0 for the host.
/// For limits that ptxas needs, never for what a kernel computes.
#if defined(__CUDA_ARCH__)
#define KDA_ARCH __CUDA_ARCH__
#else
#define KDA_ARCH 0
#endif

// NOLINTEND(bugprone-macro-parentheses)
