#include "cuda/simt/counters.hpp"

namespace kda::cuda::simt {

Counters& Counters::operator+=(const Counters& o) {
  blocks += o.blocks;
  mma += o.mma;
  ldmatrix += o.ldmatrix;
  movmatrix += o.movmatrix;
  shuffles += o.shuffles;
  votes += o.votes;
  warp_barriers += o.warp_barriers;
  block_barriers += o.block_barriers;
  named_barriers += o.named_barriers;
  path_barriers += o.path_barriers;
  special += o.special;
  atomics += o.atomics;
  copies += o.copies;
  copy_groups += o.copy_groups;
  shared_load += o.shared_load;
  shared_store += o.shared_store;
  copy_store += o.copy_store;
  global_load += o.global_load;
  global_store += o.global_store;
  global_atomic += o.global_atomic;
  copy_load += o.copy_load;
  return *this;
}

}  // namespace kda::cuda::simt
