"""The three contracts as ordered rules, to confirm which code a case must raise first.

A rule may rely on the rules before it. The codes and their order are the documented ones; fixtures name their code
by hand and this table has to agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kdagen.fixture import Fixture
from kdagen.formats import Tensor

Broken = Callable[[Fixture], bool]
Rules = list[tuple[str, Broken]]

FLOATS = ("bf16", "f16", "f32")


def _shape(f: Fixture, name: str) -> tuple[int, ...]:
    return f.inputs[name].shape


def _gate(f: Fixture) -> bool:
    return f.flag("use_gate_in_kernel")


def _has(f: Fixture, name: str) -> bool:
    return name in f.inputs


def _rank4(f: Fixture) -> bool:
    return all(len(_shape(f, name)) == 4 for name in ("q", "k", "v"))


def _bounds(f: Fixture) -> list[int]:
    return f.inputs["cu_seqlens"].values().tolist()


def _count(f: Fixture) -> int:
    return len(_bounds(f)) - 1 if _has(f, "cu_seqlens") else _shape(f, "q")[0]


def _gate_tensor_bad(f: Fixture, name: str, size: int) -> bool:
    if not _gate(f) or not _has(f, name):
        return False
    tensor: Tensor = f.inputs[name]
    return tensor.dtype != "f32" or tensor.data.size != size


def _bounds_shape_bad(f: Fixture) -> bool:
    if not _has(f, "cu_seqlens"):
        return False
    bounds = f.inputs["cu_seqlens"]
    return bounds.dtype not in ("i32", "i64") or len(bounds.shape) != 1 or bounds.shape[0] < 2


def _descends(f: Fixture, strictly: bool) -> bool:
    if not _has(f, "cu_seqlens"):
        return False
    steps = [end - first for first, end in zip(_bounds(f), _bounds(f)[1:])]
    return any(step < 0 or (strictly and step == 0) for step in steps)


def _state_shape(f: Fixture) -> tuple[int, ...]:
    sizes = _shape(f, "g")[3], _shape(f, "v")[3]
    return (_count(f), _shape(f, "v")[2], *(sizes[::-1] if f.flag("state_v_first") else sizes))


def _state_bad(f: Fixture) -> bool:
    state = f.inputs.get("initial_state")
    return state is not None and (state.dtype != "f32" or state.shape != _state_shape(f))


def _bound_bad(f: Fixture) -> bool:
    bound = f.params.get("lower_bound")
    return bound is not None and not (math.isfinite(bound) and bound < 0)


def _scale_bad(f: Fixture) -> bool:
    return not math.isfinite(f.params.get("scale", 1.0))


def _varlen_batch(f: Fixture) -> bool:
    return _has(f, "cu_seqlens") and _shape(f, "q")[0] != 1


PREFILL: Rules = [
    ("chunk_size_unsupported", lambda f: f.params.get("chunk_size", 64) != 64),
    ("training_only_option", lambda f: f.flag("cp_context") or f.flag("disable_recompute")),
    ("neg_eigval_with_fused_beta", lambda f: f.flag("allow_neg_eigval") and f.flag("use_beta_sigmoid_in_kernel")),
    ("head_dim_unsupported", lambda f: not _rank4(f) or any(_shape(f, name)[3] != 128 for name in ("q", "k", "v"))),
    ("varlen_needs_batch_one", _varlen_batch),
    ("gate_params_missing", lambda f: _gate(f) and not (_has(f, "A_log") and _has(f, "dt_bias"))),
    ("raw_gate_dtype", lambda f: _gate(f) and f.inputs["g"].dtype != "bf16"),
    ("empty_input", lambda f: 0 in _shape(f, "q")[:3]),
    ("shape_mismatch", lambda f: len({_shape(f, name) for name in ("q", "k", "v", "g")}) != 1),
    ("dtype_unsupported", lambda f: any(f.inputs[name].dtype != "bf16" for name in ("q", "k", "v"))
     or f.inputs["g"].dtype not in ("bf16", "f32")),
    ("beta_shape", lambda f: _shape(f, "beta") != _shape(f, "q")[:3]),
    ("beta_dtype", lambda f: f.inputs["beta"].dtype not in ("bf16", "f32")),
    ("a_log_invalid", lambda f: _gate_tensor_bad(f, "A_log", _shape(f, "v")[2])),
    ("dt_bias_invalid", lambda f: _gate_tensor_bad(f, "dt_bias", _shape(f, "v")[2] * 128)),
    ("cu_seqlens_shape", _bounds_shape_bad),
    ("cu_seqlens_span", lambda f: _has(f, "cu_seqlens") and (_bounds(f)[0], _bounds(f)[-1]) != (0, _shape(f, "q")[1])),
    ("cu_seqlens_not_increasing", lambda f: _descends(f, strictly=True)),
    ("initial_state_invalid", _state_bad),
    ("lower_bound_invalid", _bound_bad),
    ("scale_invalid", _scale_bad),
]  # fmt: skip


def _head_dims_bad(f: Fixture) -> bool:
    if not _rank4(f):
        return True
    return any(not 1 <= _shape(f, name)[3] <= 256 for name in ("q", "k", "v"))


def _heads_bad(f: Fixture) -> bool:
    heads, value_heads = _shape(f, "q")[2], _shape(f, "v")[2]
    return heads > 0 and value_heads % heads != 0


def _empty(f: Fixture) -> bool:
    batch, tokens, heads = _shape(f, "q")[:3]
    no_tokens = tokens == 0 and not _has(f, "cu_seqlens")
    return 0 in (batch, heads, _shape(f, "v")[2]) or no_tokens


def _shapes_differ(f: Fixture) -> bool:
    q, v = _shape(f, "q"), _shape(f, "v")
    return _shape(f, "k") != q or v[:2] != q[:2] or _shape(f, "g") != (*v[:3], q[3])


def _dtypes_bad(f: Fixture) -> bool:
    kinds = {f.inputs[name].dtype for name in ("q", "k", "v")}
    return len(kinds) != 1 or not kinds <= set(FLOATS) or f.inputs["g"].dtype not in FLOATS


RECURRENT: Rules = [
    ("head_dim_unsupported", _head_dims_bad),
    ("head_count_not_divisible", _heads_bad),
    ("varlen_needs_batch_one", _varlen_batch),
    ("gate_params_missing", lambda f: _gate(f) and not _has(f, "A_log") and "lower_bound" not in f.params),
    ("lower_bound_missing", lambda f: _gate(f) and f.flag("safe_gate") and "lower_bound" not in f.params),
    ("empty_input", _empty),
    ("shape_mismatch", _shapes_differ),
    ("dtype_unsupported", _dtypes_bad),
    ("beta_shape", lambda f: _shape(f, "beta") != _shape(f, "v")[:3]),
    ("beta_dtype", lambda f: f.inputs["beta"].dtype not in FLOATS),
    ("a_log_invalid", lambda f: _gate_tensor_bad(f, "A_log", _shape(f, "v")[2])),
    ("dt_bias_invalid", lambda f: _gate_tensor_bad(f, "dt_bias", math.prod(_shape(f, "g")[2:]))),
    ("cu_seqlens_shape", _bounds_shape_bad),
    ("cu_seqlens_span", lambda f: _has(f, "cu_seqlens") and (_bounds(f)[0] != 0 or _bounds(f)[-1] > _shape(f, "q")[1])),
    ("cu_seqlens_not_increasing", lambda f: _descends(f, strictly=False)),
    ("state_count_mismatch", lambda f: _has(f, "initial_state") and _shape(f, "initial_state")[:1] != (_count(f),)),
    ("initial_state_invalid", _state_bad),
    ("lower_bound_invalid", _bound_bad),
    ("lower_bound_out_of_range", lambda f: _gate(f) and f.flag("safe_gate") and not -5 <= f.params["lower_bound"] < 0),
    ("scale_invalid", _scale_bad),
]  # fmt: skip

CHUNK: Rules = [
    ("chunk_size_unsupported", lambda f: f.params.get("chunk_size", 64) not in (32, 64)),
    ("neg_eigval_without_fused_beta",
     lambda f: f.flag("allow_neg_eigval") and not f.flag("use_beta_sigmoid_in_kernel")),
    *RECURRENT,
]  # fmt: skip

RULES: dict[str, Rules] = {"kda_prefill": PREFILL, "chunk_kda": CHUNK, "recurrent_kda": RECURRENT}


def first_broken(fixture: Fixture) -> str:
    """The code of the first broken rule, or nothing."""
    for code, broken in RULES[fixture.op]:
        if broken(fixture):
            return code
    return ""
