#pragma once

#include "cuda/simt/executor.hpp"

namespace kda::cuda::device {
inline namespace cpu {

inline unsigned thread_idx_x() { return simt::thread_index().x; }
inline unsigned thread_idx_y() { return simt::thread_index().y; }
inline unsigned thread_idx_z() { return simt::thread_index().z; }
inline unsigned block_idx_x() { return simt::block_index().x; }
inline unsigned block_idx_y() { return simt::block_index().y; }
inline unsigned block_idx_z() { return simt::block_index().z; }
inline unsigned block_dim_x() { return simt::block_extent().x; }
inline unsigned block_dim_y() { return simt::block_extent().y; }
inline unsigned block_dim_z() { return simt::block_extent().z; }
inline unsigned grid_dim_x() { return simt::grid_extent().x; }
inline unsigned grid_dim_y() { return simt::grid_extent().y; }
inline unsigned grid_dim_z() { return simt::grid_extent().z; }

/// Of the thread in its warp: 0..31.
inline unsigned lane_id() { return simt::lane(); }

}  // namespace cpu
}  // namespace kda::cuda::device
