#pragma once

namespace kda::cuda::device {
inline namespace dev {

__device__ __forceinline__ unsigned thread_idx_x() { return threadIdx.x; }
__device__ __forceinline__ unsigned thread_idx_y() { return threadIdx.y; }
__device__ __forceinline__ unsigned thread_idx_z() { return threadIdx.z; }
__device__ __forceinline__ unsigned block_idx_x() { return blockIdx.x; }
__device__ __forceinline__ unsigned block_idx_y() { return blockIdx.y; }
__device__ __forceinline__ unsigned block_idx_z() { return blockIdx.z; }
__device__ __forceinline__ unsigned block_dim_x() { return blockDim.x; }
__device__ __forceinline__ unsigned block_dim_y() { return blockDim.y; }
__device__ __forceinline__ unsigned block_dim_z() { return blockDim.z; }
__device__ __forceinline__ unsigned grid_dim_x() { return gridDim.x; }
__device__ __forceinline__ unsigned grid_dim_y() { return gridDim.y; }
__device__ __forceinline__ unsigned grid_dim_z() { return gridDim.z; }

__device__ __forceinline__ unsigned lane_id() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

}  // namespace dev
}  // namespace kda::cuda::device
