#pragma once

// Everything a kernel may use: one function per instruction.

#include "cuda/device/flavour.hpp"
#include "cuda/device/pointers.hpp"

#if defined(__CUDACC__)
#include "cuda/device/dev/copy.cuh"
#include "cuda/device/dev/index.cuh"
#include "cuda/device/dev/math.cuh"
#include "cuda/device/dev/matrix.cuh"
#include "cuda/device/dev/memory.cuh"
#include "cuda/device/dev/warp.cuh"
#else
#include "cuda/device/cpu/copy.hpp"
#include "cuda/device/cpu/index.hpp"
#include "cuda/device/cpu/math.hpp"
#include "cuda/device/cpu/matrix.hpp"
#include "cuda/device/cpu/memory.hpp"
#include "cuda/device/cpu/warp.hpp"
#endif
