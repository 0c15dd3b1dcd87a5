"""Valid cases of `chunk_kda` and `recurrent_kda`: any head sizes, grouped value heads, three float types."""

from __future__ import annotations

import itertools

import numpy as np

from kdagen import rng
from kdagen.draw import (
    BF16,
    F16,
    F32,
    FINAL,
    FUSED_BOUND,
    FUSED_SOFTPLUS,
    GATE_BOUND,
    GATE_SOFTPLUS,
    L2NORM,
    SIGMOID,
    STATES,
    Dtypes,
    Params,
    Shape,
    case,
)
from kdagen.fixture import Fixture
from kdagen.formats import Tensor

OPS = ("chunk_kda", "recurrent_kda")
FLOATS = ("bf16", "f16", "f32")


def small(op: str, name: str, shape: Shape, params: Params, description: str, tags: str, **more: object) -> Fixture:
    """`name` gets the op in front; `recurrent_kda` has no chunks, so it is never asked for their states."""
    if op == "recurrent_kda":
        params = {key: value for key, value in params.items() if key != "return_intermediate_states"}
    return case(f"{op.removesuffix('_kda')}_{name}", op, shape, params, description, tags, **more)


def options(op: str) -> list[Fixture]:
    """Every argument on and off, f32 storage among them."""
    s16 = Shape(70, H=2, K=12)
    s8 = Shape(20, H=2, K=8)
    neg = SIGMOID | {"allow_neg_eigval": 1}
    return [
        small(op, "fused_bound_bf16", s16, FUSED_BOUND | STATES, "everything fused, bounded gate", "smoke,gate",
              state=True),
        small(op, "fused_bound_f16", s16, FUSED_BOUND | STATES, "the same in f16", "gate,dtype", dtypes=F16),
        small(op, "fused_bound_f32", s16, FUSED_BOUND | STATES, "the same in f32", "gate,dtype", dtypes=F32,
              state=True),
        small(op, "fused_softplus_f32", s16, FUSED_SOFTPLUS | STATES, "softplus gate, f32", "gate,dtype", dtypes=F32),
        small(op, "fused_softplus_bf16", s16, FUSED_SOFTPLUS | STATES, "softplus gate, bf16", "gate", state=True),
        small(op, "l2norm_only_f32", s8, L2NORM | FINAL, "only the norm is fused", "l2norm", dtypes=F32),
        small(op, "sigmoid_only_f32", s8, SIGMOID | FINAL, "only the sigmoid of beta is fused", "beta", dtypes=F32),
        small(op, "neg_eigval_f32", s8, neg | FINAL, "2·sigmoid(beta)", "beta,neg_eigval", dtypes=F32, state=True),
        small(op, "neg_eigval_bf16", s8, FUSED_BOUND | neg | FINAL, "2·sigmoid(beta) with all else fused",
              "beta,neg_eigval"),
        small(op, "gate_bound_no_a_log", s8, GATE_BOUND | FINAL, "A_log absent: the factor is 1", "gate",
              inputs={"A_log": None}),
        small(op, "gate_bound_no_params", s8, GATE_BOUND | FINAL, "A_log and dt_bias absent", "gate", dtypes=F32,
              inputs={"A_log": None, "dt_bias": None}),
        small(op, "gate_softplus_no_bias", s8, GATE_SOFTPLUS | FINAL, "dt_bias absent", "gate", dtypes=F32,
              inputs={"dt_bias": None}),
        small(op, "gate_bound_unsafe", s8, {"use_gate_in_kernel": 1, "lower_bound": -9.5}, "a bound below -5 without "
              "safe_gate", "gate"),
        small(op, "gate_off_ignored_params", s8, {"safe_gate": 1, "lower_bound": -7.0}, "gate off: safe_gate, bound "
              "and wrong gate tensors are ignored", "gate", inputs={"A_log": Tensor.of([[1.0]], "f64"),
                                                                "dt_bias": Tensor.of([1.0, 2.0], "bf16")}),
        small(op, "scale_explicit", s8, {"scale": 0.625}, "explicit scale", "scale", dtypes=F32),
        small(op, "scale_negative", s8, FUSED_BOUND | {"scale": -2.0}, "a negative scale is allowed", "scale"),
        small(op, "defaults", Shape(5, K=4), {}, "no params at all", "smoke,defaults", bare=True, oracle="mpmath"),
        small(op, "v_first", Shape(66, H=2, K=6, V=11), STATES | FUSED_BOUND | {"state_v_first": 1}, "states [V,K] "
              "with K ≠ V", "layout,states", state=True),
        small(op, "k_first", Shape(66, H=2, K=6, V=11), STATES | FUSED_BOUND, "states [K,V] with K ≠ V",
              "layout,states", state=True),
        small(op, "odd_shapes", Shape(9, H=1, HV=3, K=5), GATE_SOFTPLUS | FINAL, "A_log [1,1,3,1], dt_bias [1,1,3,5]",
              "shape,gate", inputs={"A_log": Tensor.of(np.reshape([-1.0, 0.0, 0.5], (1, 1, 3, 1)), "f32"),
                                    "dt_bias": Tensor.of(rng.normal("odd_shapes_small", (1, 1, 3, 5)), "f32")}),
        small(op, "state_unused_final", s8, FUSED_BOUND, "initial state, no final state asked for", "state",
              state=True),
    ]  # fmt: skip


def storage(op: str) -> list[Fixture]:
    """Every fused option in f32 and f16 storage: a value that a kernel rounds to bf16 on the way shows there only."""
    s8, neg = Shape(20, H=2, K=8), SIGMOID | {"allow_neg_eigval": 1}
    narrow = Shape(40, H=2, K=6, V=11)
    f16_only = [
        ("l2norm_only", s8, L2NORM | FINAL, "only the norm is fused", "l2norm", False),
        ("sigmoid_only", s8, SIGMOID | FINAL, "only the sigmoid of beta is fused", "beta", False),
        ("neg_eigval", s8, neg | FINAL, "2·sigmoid(beta)", "beta,neg_eigval", True),
        ("fused_softplus", Shape(70, H=2, K=12), FUSED_SOFTPLUS | STATES, "softplus gate", "gate", True),
    ]
    both = [
        ("gate_bound_only", s8, GATE_BOUND | FINAL, "only the bounded gate is fused", "gate", False),
        ("gate_softplus_only", s8, GATE_SOFTPLUS | FINAL, "only the softplus gate is fused", "gate", False),
        ("state_only", Shape(70, H=2, K=8), STATES, "nothing fused, resumed", "states", True),
        ("v_first", narrow, FUSED_BOUND | STATES | {"state_v_first": 1}, "states [V,K], K ≠ V", "layout,states", True),
        ("everything", s8, FUSED_SOFTPLUS | neg | STATES, "norm, gate, bias and 2·sigmoid(beta) fused, resumed",
         "gate,beta,neg_eigval,states", True),
    ]  # fmt: skip
    return [
        small(op, f"{name}_{kind}", shape, params, f"{what}; {kind} storage", f"{tags},dtype,storage", dtypes=dtypes,
              state=state)
        for kind, dtypes, cases in (("f32", F32, both), ("f16", F16, f16_only + both))
        for name, shape, params, what, tags, state in cases
    ]  # fmt: skip


def shapes(op: str) -> list[Fixture]:
    """Head counts and head sizes."""
    sizes = ((1, 1), (2, 256), (256, 2), (255, 3), (3, 17), (64, 32), (60, 7), (100, 5), (33, 64))
    constant = {"v": np.arange(1, 9).reshape(8, 1), "beta": np.linspace(0.1, 0.9, 8)}
    return [
        *(
            small(op, f"k{k}_v{v}", Shape(19, H=1, K=k, V=v), FUSED_BOUND | FINAL, "head sizes that are no power of "
                  "two, or differ, or lie at the limit", "shape", state=True)
            for k, v in sizes
        ),
        small(op, "hv2", Shape(40, H=2, HV=4, K=12), FUSED_BOUND | STATES, "two value heads a key head", "gva",
              state=True),
        small(op, "hv3", Shape(40, H=1, HV=3, K=10, V=6), FUSED_SOFTPLUS | FINAL, "three value heads a key head", "gva",
              dtypes=F32, state=True),
        small(op, "hv4_constants", Shape(18, H=2, HV=8, K=8), FUSED_BOUND | FINAL, "four value heads a key head, v and "
              "beta constant per head: a wrong head map shows by value", "gva,heads", inputs=constant),
        small(op, "batch3", Shape(21, H=2, K=9, V=4, B=3), FUSED_BOUND | STATES, "three rows", "batch", state=True),
        small(op, "batch5_decode", Shape(1, H=2, HV=4, K=12, B=5), FUSED_SOFTPLUS | FINAL, "one decode step of five "
              "sequences", "batch,decode", state=True),
    ]  # fmt: skip


def dtypes() -> list[Fixture]:
    """All 27 combinations for `chunk_kda`; for `recurrent_kda` 9 in which every pair of dtypes meets."""
    shape = Shape(6, H=1, HV=2, K=6, V=5)
    params = FUSED_BOUND | FINAL

    def one(op: str, kinds: tuple[str, ...]) -> Fixture:
        return small(op, "dtype_" + "_".join(kinds), shape, params, "q k v, g and beta in these types", "dtype",
                     dtypes=Dtypes(*kinds), state=True)  # fmt: skip

    squares = [(FLOATS[i], FLOATS[j], FLOATS[(i + j) % 3]) for i in range(3) for j in range(3)]
    every = itertools.product(FLOATS, repeat=3)
    return [one("chunk_kda", kinds) for kinds in every] + [one("recurrent_kda", kinds) for kinds in squares]


def packed(op: str) -> list[Fixture]:
    """Family 3: packed boundaries, empty sequences, rows after the last bound."""
    hard = {"g": -4.9}

    def run(name: str, bounds: list[int], tokens: int, why: str, kind: str = "i64", **more: object) -> Fixture:
        fixture = small(op, name, Shape(tokens, H=1, HV=2, K=6, V=5), more.pop("params", FUSED_BOUND) | STATES, why,
                        "varlen,family3", cu=Tensor.of(bounds, kind), **more)  # fmt: skip
        return _with_nan_rows(fixture, bounds[-1])

    return [
        run("varlen_0_63_128", [0, 63, 128], 128, "boundary inside a chunk", params={}, inputs=hard, state=True),
        run("varlen_0_1_2_66_67", [0, 1, 2, 66, 67], 67, "one-token sequences", "i32", state=True),
        run("varlen_0_0_5", [0, 0, 5], 5, "an empty sequence first", state=True),
        run("varlen_0_5_5_9", [0, 5, 5, 9], 9, "an empty sequence between, resumed: its state comes back", "i32",
            state=True),
        run("varlen_0_5_5_9_fresh", [0, 5, 5, 9], 9, "an empty sequence without initial state: zeros", params={}),
        run("varlen_0_0", [0, 0], 0, "one empty sequence, no token at all", state=True),
        run("varlen_0_0_0_of_4_rows", [0, 0, 0], 4, "two empty sequences, four rows of NaN after them", state=True),
        run("varlen_nan_rows", [0, 50, 100], 128, "28 rows of NaN after the last bound"),
        run("varlen_nan_rows_hard", [0, 63], 91, "28 rows of NaN after one sequence", "i32", params={}, inputs=hard,
            state=True),
    ]  # fmt: skip


def _with_nan_rows(fixture: Fixture, end: int) -> Fixture:
    for name in ("q", "k", "v", "g", "beta"):
        tensor = fixture.inputs[name]
        values = tensor.values()
        values[:, end:] = np.nan
        fixture.inputs[name] = Tensor.of(values, tensor.dtype)
    return fixture


def lengths(op: str) -> list[Fixture]:
    """Family 5 and the states at chunk bounds."""
    pairs = [(1, 60), (15, 64), (16, 100), (17, 128), (63, 64), (64, 100), (65, 60), (127, 64), (129, 60)]
    if op == "recurrent_kda":
        pairs = pairs[::2]
    runs = np.cumsum([0, 64, 127, 128, 130, 200]).tolist()
    return [
        *(
            small(op, f"tail_t{t}_k{k}", Shape(t, H=1, K=k, V=3), FUSED_BOUND | STATES, "tail handling in output and "
                  "state", "tail,family5", state=True)
            for t, k in pairs
        ),
        small(op, "states_at_bounds", Shape(runs[-1], H=1, K=4), FUSED_BOUND | STATES, "lengths 64, 127, 128, 130, "
              "200: state i is the one after 64·i tokens, none for what a last chunk leaves over", "states,tail",
              cu=runs, state=True),
        small(op, "split_200", Shape(200, H=1, K=5, V=4), FUSED_BOUND | STATES, "200 tokens at once, to be "
              "compared with any split", "states", state=True),
    ]  # fmt: skip


def chunk_only() -> list[Fixture]:
    """Chunk size 32, and the recurrent form's indifference to it."""
    halves = STATES | {"chunk_size": 32}
    return [
        small("chunk_kda", "c32", Shape(70, H=2, K=8), FUSED_BOUND | halves, "chunk size 32", "chunk32,states",
              state=True),
        small("chunk_kda", "c32_varlen", Shape(70, H=1, K=8, V=3), FUSED_SOFTPLUS | halves, "chunk size 32, packed",
              "chunk32,states,varlen", cu=[0, 33, 33, 70], dtypes=F32),
        small("chunk_kda", "c32_v_first", Shape(64, H=1, K=8, V=3), halves | {"state_v_first": 1}, "chunk size 32, "
              "[V,K]", "chunk32,states,layout"),
        small("recurrent_kda", "ignores_chunk_size", Shape(20, H=1, K=8), FUSED_BOUND | FINAL | {"chunk_size": 48},
              "the recurrent form has no chunk size to refuse", "defaults"),
        small("recurrent_kda", "neg_eigval_ready", Shape(30, H=1, K=8), FINAL | {"allow_neg_eigval": 1}, "ready-made "
              "beta in (0, 2): the flag is no error here", "beta,neg_eigval", dtypes=F32,
              inputs={"beta": rng.uniform("recurrent_neg_ready", (30, 1), 0.0, 2.0)}),
        small("recurrent_kda", "defaults_bf16", Shape(3, K=2), FINAL, "three tokens", "smoke", dtypes=BF16,
              oracle="mpmath"),
    ]  # fmt: skip


def all_cases() -> list[Fixture]:
    per_op = [build(op) for op in OPS for build in (options, storage, shapes, packed, lengths)]
    return [fixture for group in per_op for fixture in group] + dtypes() + chunk_only()
