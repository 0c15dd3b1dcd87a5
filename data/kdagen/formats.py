"""Element types of fixtures and the rounding of values to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STORAGE: dict[str, str] = {
    "bf16": "<u2",  # bit patterns
    "f16": "<f2",
    "f32": "<f4",
    "f64": "<f8",
    "i32": "<i4",
    "i64": "<i8",
    "u8": "u1",
}


def round_to_bf16(values: np.ndarray) -> np.ndarray:
    """Bit patterns of `values` rounded to f32, then to bf16, each to nearest even; NaN stays NaN."""
    single = np.asarray(values, dtype=np.float64).astype("<f4")
    bits = single.view("<u4").astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet_nan = (bits >> 16) | 0x40
    return np.where(np.isnan(single), quiet_nan, rounded).astype("<u2")


@dataclass(frozen=True)
class Tensor:
    """Elements as they are stored: bf16 as 16-bit patterns, everything else natively, row-major."""

    dtype: str
    data: np.ndarray

    @staticmethod
    def of(values: np.ndarray | list, dtype: str) -> Tensor:
        """`values` rounded to `dtype`."""
        array = np.asarray(values)
        stored = round_to_bf16(array) if dtype == "bf16" else array.astype(STORAGE[dtype])
        return Tensor(dtype, np.ascontiguousarray(stored).reshape(array.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def values(self) -> np.ndarray:
        """The exact values, in f64 (int64 for integers)."""
        if self.dtype == "bf16":
            wide = self.data.astype("<u4") << 16
            return wide.view("<f4").astype(np.float64)
        return self.data.astype(np.int64 if self.dtype[0] in "iu" else np.float64)

    def cast(self, dtype: str) -> Tensor:
        return Tensor.of(self.values(), dtype)

    def at(self, index: object) -> Tensor:
        """The same elements, indexed as NumPy does."""
        return Tensor(self.dtype, np.ascontiguousarray(self.data[index]))

    def reshaped(self, *shape: int) -> Tensor:
        return Tensor(self.dtype, self.data.reshape(shape))
