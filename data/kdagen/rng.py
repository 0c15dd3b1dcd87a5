"""Random numbers whose bits depend on nothing but the key.

SplitMix64 over a counter, seeded by SHA-256 of the key. Only integer arithmetic and correctly rounded IEEE
operations follow, so no version of NumPy or of the C library can change a fixture.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray


def words(key: str, count: int) -> Array:
    """The first `count` 64-bit words of the stream named `key`."""
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little")
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(key: str, shape: Shape, low: float = 0.0, high: float = 1.0) -> Array:
    """Uniform in [low, high), 53 bits."""
    unit = (words(key, math.prod(shape)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (low + (high - low) * unit).reshape(shape)


def _normal_steps(key: str, shape: Shape) -> Array:
    """Near-normal integers of standard deviation 65536: sums of twelve 16-bit words less their mean."""
    count = math.prod(shape)
    parts = words(key, 3 * count).reshape(count, 3, 1) >> np.arange(0, 64, 16, dtype=np.uint64)
    return ((parts & np.uint64(0xFFFF)).sum(axis=(1, 2)).astype(np.int64) - 393210).reshape(shape)


def normal(key: str, shape: Shape) -> Array:
    """Nearly normal with mean 0 and deviation 1, never beyond 6."""
    return _normal_steps(key, shape) / 65536.0


def unit_rows(key: str, shape: Shape) -> Array:
    """Random directions: every row along the last axis has length 1."""
    steps = _normal_steps(key, shape)
    return normalised(steps)


def normalised(steps: Array) -> Array:
    """Rows of integers below 2^22 in size, scaled to length 1; the sum of squares is exact."""
    squares = (steps * steps).sum(axis=-1, keepdims=True).astype(np.float64)
    return steps / np.sqrt(np.maximum(squares, 1.0))
