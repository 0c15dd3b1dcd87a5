"""Ordinary inputs for a KDA case of any shape and options, to be overridden where a case is about something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdagen import rng
from kdagen.fixture import Fixture
from kdagen.formats import Tensor

Params = dict[str, Any]
Overrides = dict[str, Any]  # arrays are broadcast and rounded to the case's dtypes; Tensor stands; None removes

GATE_BOUND: Params = {"use_gate_in_kernel": 1, "safe_gate": 1, "lower_bound": -5.0}
GATE_SOFTPLUS: Params = {"use_gate_in_kernel": 1}
L2NORM: Params = {"use_qk_l2norm_in_kernel": 1}
SIGMOID: Params = {"use_beta_sigmoid_in_kernel": 1}
FUSED_BOUND: Params = {**L2NORM, **GATE_BOUND, **SIGMOID}
FUSED_SOFTPLUS: Params = {**L2NORM, **GATE_SOFTPLUS, **SIGMOID}
FINAL: Params = {"output_final_state": 1}
STATES: Params = {"output_final_state": 1, "return_intermediate_states": 1}

WRITTEN_FLAGS = (
    "use_qk_l2norm_in_kernel",
    "use_gate_in_kernel",
    "use_beta_sigmoid_in_kernel",
    "safe_gate",
    "allow_neg_eigval",
    "state_v_first",
    "output_final_state",
    "return_intermediate_states",
)


@dataclass(frozen=True)
class Shape:
    """Extents; HV = 0 means H, V = 0 means K."""

    T: int
    H: int = 1
    HV: int = 0
    K: int = 128
    V: int = 0
    B: int = 1

    @property
    def heads(self) -> int:
        return self.HV or self.H

    @property
    def columns(self) -> int:
        return self.V or self.K


@dataclass(frozen=True)
class Dtypes:
    qkv: str = "bf16"
    g: str = "bf16"
    beta: str = "bf16"


BF16 = Dtypes()
BF16_G32 = Dtypes(g="f32", beta="f32")
F32 = Dtypes("f32", "f32", "f32")
F16 = Dtypes("f16", "f16", "f16")


def case(
    name: str,
    op: str,
    shape: Shape,
    params: Params,
    description: str,
    tags: str,
    dtypes: Dtypes = BF16,
    state: bool = False,
    cu: list[int] | Tensor | None = None,
    inputs: Overrides | None = None,
    seed: str = "",
    bare: bool = False,
    oracle: str = "numpy-f64",
) -> Fixture:
    """A KDA fixture without its answer. `bare` leaves out every param that is at its default."""
    bounds = Tensor.of(cu, "i64") if isinstance(cu, list) else cu
    tensors = _draw(seed or name, shape, dtypes, params)
    count = shape.B if bounds is None else bounds.data.size - 1
    if state:
        tensors["initial_state"] = _state(seed or name, shape, params, count)
    if bounds is not None:
        tensors["cu_seqlens"] = bounds
    for key, value in (inputs or {}).items():
        _override(tensors, key, value)
    written = dict(params) if bare else {"chunk_size": 64} | dict.fromkeys(WRITTEN_FLAGS, 0) | params
    return Fixture(name, op, tensors, written, tags, description, oracle)


def _override(tensors: dict[str, Tensor], key: str, value: Any) -> None:
    if value is None:
        del tensors[key]
    elif isinstance(value, Tensor):
        tensors[key] = value
    else:
        old = tensors[key]
        tensors[key] = Tensor.of(np.broadcast_to(np.asarray(value, np.float64), old.shape), old.dtype)


def _draw(seed: str, shape: Shape, dtypes: Dtypes, params: Params) -> dict[str, Tensor]:
    lead, heads = (shape.B, shape.T), shape.heads
    values = {
        "q": _directions(f"{seed}/q", (*lead, shape.H, shape.K), params),
        "k": _directions(f"{seed}/k", (*lead, shape.H, shape.K), params),
        "v": rng.normal(f"{seed}/v", (*lead, heads, shape.columns)),
        "beta": rng.uniform(f"{seed}/beta", (*lead, heads), 0.05, 1.0),
    }
    if params.get("use_beta_sigmoid_in_kernel"):
        values["beta"] = 2 * rng.normal(f"{seed}/beta", (*lead, heads))
    if params.get("use_gate_in_kernel"):
        values["g"] = 2 * rng.normal(f"{seed}/g", (*lead, heads, shape.K))
    else:
        values["g"] = log_decays(f"{seed}/g", (*lead, heads, shape.K))
    kinds = {"q": dtypes.qkv, "k": dtypes.qkv, "v": dtypes.qkv, "g": dtypes.g, "beta": dtypes.beta}
    tensors = {name: Tensor.of(values[name], kinds[name]) for name in ("q", "k", "v", "g", "beta")}
    if params.get("use_gate_in_kernel"):
        tensors["A_log"] = Tensor.of(rng.uniform(f"{seed}/A_log", (heads,), -1.5, 1.0), "f32")
        tensors["dt_bias"] = Tensor.of(rng.uniform(f"{seed}/dt_bias", (heads * shape.K,), -4.0, 0.5), "f32")
    return tensors


def _directions(key: str, shape: tuple[int, ...], params: Params) -> np.ndarray:
    """Unit vectors where they are taken as given, vectors of assorted lengths where the case normalises."""
    if not params.get("use_qk_l2norm_in_kernel"):
        return rng.unit_rows(key, shape)
    return rng.normal(key, shape) * rng.uniform(f"{key}/length", (*shape[:-1], 1), 0.1, 3.0)


def log_decays(key: str, shape: tuple[int, ...]) -> np.ndarray:
    """In (−4, 0], most of them slow, so that the state reaches far back in some channels."""
    u = rng.uniform(key, shape)
    return -4.0 * u * u * u * u


def _state(seed: str, shape: Shape, params: Params, count: int) -> Tensor:
    """Multiples of 1/512: more digits than bf16 holds, yet files compress."""
    sizes = (shape.K, shape.columns)
    if params.get("state_v_first"):
        sizes = sizes[::-1]
    values = 0.5 * rng.normal(f"{seed}/initial_state", (count, shape.heads, *sizes))
    return Tensor.of(np.round(values * 512) / 512, "f32")
