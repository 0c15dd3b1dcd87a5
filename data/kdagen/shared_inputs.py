"""Inputs with a structure that breaks something, used by more than one contract."""

from __future__ import annotations

import numpy as np

from kdagen import rng
from kdagen.draw import Overrides
from kdagen.formats import Tensor

Array = np.ndarray


def hand_case(size: int, dtype: str = "bf16", gate: str = "f32") -> Overrides:
    """K = V = 2, T = 1, worked by hand; for larger sizes in the first two channels, zeros elsewhere.

    S0 = [[1,2],[3,4]] (rows = K), decay (1/2, 1/4), k = (1,0), v = (10,20), beta = 1/2, q = (1,1), scale = 1.
    """

    def row(first: float, second: float) -> Array:
        return np.pad([first, second], (0, size - 2)).reshape(1, 1, 1, size)

    return {
        "q": Tensor.of(row(1, 1), dtype),
        "k": Tensor.of(row(1, 0), dtype),
        "v": Tensor.of(row(10, 20), dtype),
        "g": Tensor.of(np.log(row(0.5, 0.25) + (np.arange(size) >= 2)), gate),
        "beta": Tensor.of(np.full((1, 1, 1), 0.5), gate),
        "initial_state": Tensor.of(np.pad([[1.0, 2.0], [3.0, 4.0]], (0, size - 2))[None, None], "f32"),
    }


def axis_rows(size: int) -> Array:
    """e1."""
    return np.where(np.arange(size) == 0, 1.0, 0.0)


def near_copies(seed: str, shape: tuple[int, ...], share: float = 0.01) -> Array:
    """Copies of one direction with noise of length `share`."""
    return rng.unit_rows(f"{seed}/copy", (*([1] * (len(shape) - 1)), shape[-1])) + share * rng.unit_rows(
        f"{seed}/noise", shape
    )


def alternating(seed: str, shape: tuple[int, ...]) -> Array:
    """One direction per head, sign alternating along the first axis (tokens)."""
    key = rng.unit_rows(f"{seed}/key", (1, *shape[1:]))
    sign = np.where(np.arange(shape[0]) % 2 == 0, 1.0, -1.0)
    return key * sign.reshape(-1, *([1] * (len(shape) - 1)))


def resets(seed: str, shape: tuple[int, ...], share: float = 0.3) -> Array:
    """Log decays of −1000 in a share of the places, slow elsewhere."""
    return np.where(rng.uniform(f"{seed}/g", shape) < share, -1000.0, -0.01)


def causality_inputs(seed: str, edit: str, size: int) -> Overrides:
    """Raw gates over the whole range of a bound; `edit` is base, edited (from token 6 on) or cut (after token 7)."""
    tokens, kept = 16, 7 if edit == "cut" else 16
    gates = 3 * rng.normal(f"{seed}/g", (tokens, 1, size))
    if edit == "edited":
        gates[6:] = -6.0
    return {
        "q": rng.unit_rows(f"{seed}/q", (tokens, 1, size))[:kept],
        "k": rng.unit_rows(f"{seed}/k", (tokens, 1, size))[:kept],
        "v": rng.normal(f"{seed}/v", (tokens, 1, size))[:kept],
        "beta": rng.uniform(f"{seed}/beta", (tokens, 1))[:kept],
        "g": gates[:kept],
        "A_log": 0.0,
        "dt_bias": 0.0,
    }
