"""Cases that a contract refuses: each rule alone in several ways, and neighbouring rules broken together."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kdagen.draw import FINAL, FUSED_BOUND, FUSED_SOFTPLUS, Shape, case
from kdagen.fixture import Fixture
from kdagen.formats import Tensor

Break = Callable[[Fixture], None]
Breaks = list[tuple[str, str, Break]]  # code, short name, what to do to a valid case

TOKENWISE = ("q", "k", "v", "g", "beta")


def param(**values: int | float) -> Break:
    return lambda f: f.params.update(values)


def drop(*names: str) -> Break:
    """Takes away inputs or params."""

    def apply(f: Fixture) -> None:
        for name in names:
            f.inputs.pop(name, None)
            f.params.pop(name, None)

    return apply


def cast(dtype: str, *names: str) -> Break:
    return lambda f: f.inputs.update({name: f.inputs[name].cast(dtype) for name in names})


def index(where: object, *names: str) -> Break:
    return lambda f: f.inputs.update({name: f.inputs[name].at(where) for name in names})


def bounds(values: list, dtype: str = "i64") -> Break:
    return lambda f: f.inputs.update(cu_seqlens=Tensor.of(np.array(values), dtype))


def state(shape: tuple[int, ...], dtype: str = "f32") -> Break:
    return lambda f: f.inputs.update(initial_state=Tensor.of(np.zeros(shape), dtype))


def both(*parts: Break) -> Break:
    def apply(f: Fixture) -> None:
        for part in parts:
            part(f)

    return apply


def doubled_batch(f: Fixture) -> None:
    index([0, 0], *TOKENWISE)(f)


LAST = (Ellipsis, slice(0, -1))
NO_TOKENS = np.s_[:, :0]
NO_BATCH = np.s_[:0]
ODD_BOUND = param(lower_bound=0.5)


def common_breaks(tokens: int) -> Breaks:
    """Breaks that mean the same under every contract."""
    no_gate = param(use_gate_in_kernel=0)
    return [
        ("head_dim_unsupported", "rank3", index(0, "q", "k", "v")),
        ("head_dim_unsupported", "rank5", index(np.s_[..., None], "q", "k", "v")),
        ("varlen_needs_batch_one", "batch2", both(doubled_batch, bounds([0, tokens]))),
        ("empty_input", "no_tokens", index(NO_TOKENS, *TOKENWISE)),
        ("empty_input", "no_batch", index(NO_BATCH, *TOKENWISE)),
        ("shape_mismatch", "k_short", index(np.s_[:, :-1], "k")),
        ("shape_mismatch", "v_short", index(np.s_[:, :-1], "v")),
        ("shape_mismatch", "g_channels", index(LAST, "g")),
        ("shape_mismatch", "g_rank3", index(0, "g")),
        ("dtype_unsupported", "v_f64", cast("f64", "v")),
        ("dtype_unsupported", "mixed_qkv", cast("f32", "k")),
        ("dtype_unsupported", "q_i32", cast("i32", "q", "k", "v")),
        ("dtype_unsupported", "g_f64", both(no_gate, cast("f64", "g"))),
        ("beta_shape", "beta_short", index(np.s_[:, :-1], "beta")),
        ("beta_shape", "beta_rank4", index(np.s_[..., None], "beta")),
        ("beta_dtype", "beta_f64", cast("f64", "beta")),
        ("a_log_invalid", "a_log_bf16", cast("bf16", "A_log")),
        ("a_log_invalid", "a_log_count", index([0, 0, 0], "A_log")),
        ("dt_bias_invalid", "dt_bias_f64", cast("f64", "dt_bias")),
        ("dt_bias_invalid", "dt_bias_count", index(np.s_[:-1], "dt_bias")),
        ("cu_seqlens_shape", "cu_rank2", bounds([[0, tokens]])),
        ("cu_seqlens_shape", "cu_one", bounds([0])),
        ("cu_seqlens_shape", "cu_f32", bounds([0, tokens], "f32")),
        ("cu_seqlens_span", "cu_starts_at_1", bounds([1, tokens])),
        ("cu_seqlens_span", "cu_too_long", bounds([0, 2, tokens + 1])),
        ("cu_seqlens_not_increasing", "cu_backward", bounds([0, 3, 2, tokens])),
        ("cu_seqlens_not_increasing", "cu_beyond_and_back", bounds([0, tokens + 5, tokens], "i32")),
        ("cu_seqlens_not_increasing", "cu_negative", bounds([0, -1, tokens])),
        ("lower_bound_invalid", "bound_positive", ODD_BOUND),
        ("lower_bound_invalid", "bound_zero", param(lower_bound=0.0)),
        ("lower_bound_invalid", "bound_minus_inf", param(lower_bound=-math.inf)),
        ("lower_bound_invalid", "bound_nan", param(lower_bound=math.nan)),
        ("lower_bound_invalid", "bound_positive_gate_off", both(no_gate, ODD_BOUND)),
        ("scale_invalid", "scale_nan", param(scale=math.nan)),
        ("scale_invalid", "scale_inf", param(scale=math.inf)),
    ]  # fmt: skip


def prefill_breaks() -> Breaks:
    size = 128
    return common_breaks(4) + [
        ("chunk_size_unsupported", "chunk32", param(chunk_size=32)),
        ("chunk_size_unsupported", "chunk0", param(chunk_size=0)),
        ("training_only_option", "cp_context", param(cp_context=1)),
        ("training_only_option", "disable_recompute", param(disable_recompute=1)),
        ("neg_eigval_with_fused_beta", "neg_eigval", param(allow_neg_eigval=1)),
        ("head_dim_unsupported", "k64", index(np.s_[..., :64], "q", "k", "v", "g")),
        ("head_dim_unsupported", "v64", index(np.s_[..., :64], "v")),
        ("gate_params_missing", "no_a_log", drop("A_log")),
        ("gate_params_missing", "no_dt_bias", drop("dt_bias")),
        ("raw_gate_dtype", "raw_gate_f32", cast("f32", "g")),
        ("raw_gate_dtype", "raw_gate_f16", cast("f16", "g")),
        ("empty_input", "no_heads", index(np.s_[:, :, :0], *TOKENWISE)),
        ("shape_mismatch", "grouped_heads", index(np.s_[:, :, [0, 0]], "v", "g", "beta")),
        ("dtype_unsupported", "qkv_f16", cast("f16", "q", "k", "v")),
        ("dtype_unsupported", "qkv_f32", cast("f32", "q", "k", "v")),
        ("dtype_unsupported", "g_f16", both(param(use_gate_in_kernel=0), cast("f16", "g"))),
        ("beta_dtype", "beta_f16", cast("f16", "beta")),
        ("cu_seqlens_span", "cu_too_short", bounds([0, 2, 3])),
        ("cu_seqlens_not_increasing", "cu_empty_sequence", bounds([0, 2, 2, 4])),
        ("initial_state_invalid", "state_count", state((2, 1, size, size))),
        ("initial_state_invalid", "state_f16", state((1, 1, size, size), "f16")),
        ("initial_state_invalid", "state_rank3", state((1, size, size))),
    ]  # fmt: skip


def small_breaks(op: str) -> Breaks:
    """Base case: T = 6, H = 2, HV = 4, K = 5, V = 3."""
    many = [0] * 257
    breaks = common_breaks(6) + [
        ("head_dim_unsupported", "k257", index((Ellipsis, many), "q", "k", "g")),
        ("head_dim_unsupported", "v257", index((Ellipsis, many), "v")),
        ("head_dim_unsupported", "k0", index(np.s_[..., :0], "q", "k", "g")),
        ("head_count_not_divisible", "hv3", both(index(np.s_[:, :, :3], "v", "g", "beta"), index(np.s_[:3], "A_log"))),
        ("head_count_not_divisible", "hv1", index(np.s_[:, :, :1], "v", "g", "beta")),
        ("gate_params_missing", "no_gate_params", drop("A_log", "lower_bound")),
        ("lower_bound_missing", "no_bound", drop("lower_bound")),
        ("empty_input", "no_heads", index(np.s_[:, :, :0], *TOKENWISE)),
        ("empty_input", "no_value_heads", index(np.s_[:, :, :0], "v", "g", "beta")),
        ("shape_mismatch", "g_key_heads", index(np.s_[:, :, :2], "g")),
        ("beta_shape", "beta_key_heads", index(np.s_[:, :, :2], "beta")),
        ("beta_dtype", "beta_i64", cast("i64", "beta")),
        ("dt_bias_invalid", "dt_bias_key_heads", index(np.s_[:10], "dt_bias")),
        ("state_count_mismatch", "state_count", state((2, 4, 5, 3))),
        ("state_count_mismatch", "state_count_packed", both(bounds([0, 2, 2, 6]), state((2, 4, 5, 3)))),
        ("initial_state_invalid", "state_bf16", state((1, 4, 5, 3), "bf16")),
        ("initial_state_invalid", "state_transposed", state((1, 4, 3, 5))),
        ("initial_state_invalid", "state_not_transposed", both(param(state_v_first=1), state((1, 4, 5, 3)))),
        ("initial_state_invalid", "state_key_heads", state((1, 2, 5, 3))),
        ("lower_bound_out_of_range", "bound_below", param(lower_bound=-7.0)),
        ("lower_bound_out_of_range", "bound_just_below", param(lower_bound=-5.0000001)),
    ]  # fmt: skip
    if op == "chunk_kda":
        ready = param(allow_neg_eigval=1, use_beta_sigmoid_in_kernel=0)
        breaks += [
            ("chunk_size_unsupported", "chunk128", param(chunk_size=128)),
            ("chunk_size_unsupported", "chunk16", param(chunk_size=16)),
            ("neg_eigval_without_fused_beta", "neg_eigval_ready", ready),
        ]
    return breaks


def _base(op: str, name: str, description: str, tags: str) -> Fixture:
    shape = Shape(4) if op == "kda_prefill" else Shape(6, H=2, HV=4, K=5, V=3)
    seed = f"error_{op}"
    return case(name, op, shape, FUSED_BOUND | FINAL, description, tags, seed=seed, bare=True, oracle="hand")


def _refused(op: str, short: str, code: str, breaks: list[Break], description: str, tags: str) -> Fixture:
    fixture = _base(op, f"error_{op.removeprefix('kda_').removesuffix('_kda')}_{short}", description, tags)
    for apply in breaks:
        apply(fixture)
    fixture.expected = {"error": code}
    return fixture


def singles(op: str, breaks: Breaks) -> list[Fixture]:
    return [
        _refused(op, short, code, [apply], f"must be refused as {code}", "error") for code, short, apply in breaks
    ]


def one_each(breaks: Breaks) -> Breaks:
    """The first break of each code: `recurrent_kda` shares its rules with `chunk_kda`, which has all of them."""
    return list({code: (code, short, apply) for code, short, apply in reversed(breaks)}.values())


# Two rules that one change breaks, or whose single breaks would undo each other.
JOINT: dict[tuple[str, str], Break] = {
    ("empty_input", "shape_mismatch"): both(index(NO_TOKENS, *TOKENWISE), index(LAST, "g")),
    ("cu_seqlens_shape", "cu_seqlens_span"): bounds([[1, 3]]),
    ("cu_seqlens_span", "cu_seqlens_not_increasing"): bounds([1, 3, 2]),
    ("gate_params_missing", "lower_bound_missing"): drop("A_log", "lower_bound"),
    ("state_count_mismatch", "initial_state_invalid"): state((3, 4, 5), "f16"),
    ("lower_bound_invalid", "lower_bound_out_of_range"): param(lower_bound=1.0),
}


def pairs(op: str, order: list[str], breaks: Breaks) -> list[Fixture]:
    """Each rule broken together with the next one: the earlier one must be raised."""
    first_break: dict[str, Break] = {}
    for code, _, apply in breaks:
        first_break.setdefault(code, apply)
    fixtures = []
    for number, (code, after) in enumerate(zip(order, order[1:]), start=1):
        joint = JOINT.get((code, after))
        applied = [joint] if joint else [first_break[after], first_break[code]]
        why = f"{code} comes before {after}"
        fixtures.append(_refused(op, f"order_{number:02d}", code, applied, why, "error,order"))
    return fixtures


def everything(op: str, code: str, breaks: Breaks) -> Fixture:
    """As many rules broken at once as one case can carry."""
    wanted = {"beta_dtype", "a_log_invalid", "lower_bound_invalid", "scale_invalid", code}
    chosen = {broken: apply for broken, _, apply in breaks if broken in wanted}
    return _refused(op, "everything", code, list(chosen.values()), f"many rules broken, {code} first", "error,order")


def soft_gate_bound(op: str) -> Fixture:
    """A softplus case whose gate tensors are fine but whose scale is not: nothing else may be raised."""
    fixture = _base(op, f"error_{op.removesuffix('_kda').removeprefix('kda_')}_softplus_scale", "a sound softplus case "
                    "with scale -inf", "error")  # fmt: skip
    fixture.params = {key: value for key, value in fixture.params.items() if key != "lower_bound"}
    fixture.params |= FUSED_SOFTPLUS | {"safe_gate": 0, "scale": -math.inf}
    fixture.expected = {"error": "scale_invalid"}
    return fixture


def all_cases(orders: dict[str, list[str]]) -> list[Fixture]:
    """`orders` gives the codes of each contract in the order in which they are checked."""
    fixtures: list[Fixture] = []
    for op, order in orders.items():
        breaks = prefill_breaks() if op == "kda_prefill" else small_breaks(op)
        if op == "recurrent_kda":
            fixtures += singles(op, one_each(breaks))
        else:
            fixtures += singles(op, breaks) + pairs(op, order, breaks)
        fixtures += [everything(op, order[0], breaks), soft_gate_bound(op)]
    return fixtures
