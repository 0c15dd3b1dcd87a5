"""Cases after public fault reports, at small head sizes."""

from __future__ import annotations

import math

import numpy as np

from kdagen import rng
from kdagen.cases_small import OPS, small
from kdagen.draw import (
    BF16_G32,
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
    Shape,
)
from kdagen.fixture import Fixture
from kdagen.formats import Tensor
from kdagen.shared_inputs import (
    alternating,
    axis_rows,
    causality_inputs,
    hand_case,
    near_copies,
    resets,
)

LADDER = np.array([0, -1e-4, -0.5, -1.38, -1.4, -2.75, -2.8, -5, -5.5, -5.6, -11, -12, -1000.0])
LADDER_TEXT = "one constant log decay a head, 0 to -1000"


def hand(op: str) -> list[Fixture]:
    """Family 1."""
    result = "o = (6, 11.5), S = [[5.25, 10.5], [0.75, 1]]"
    plain = FINAL | {"scale": 1.0}
    first = plain | {"state_v_first": 1}
    swapped = hand_case(2, "f32")
    swapped["initial_state"] = Tensor.of([[[[1.0, 3.0], [2.0, 4.0]]]], "f32")
    shape = Shape(1, K=2)
    return [
        *(
            small(op, f"hand_case_{kind}", shape, plain, f"worked by hand: {result}", "family1,layout",
                  dtypes=Dtypes(kind, "f32", "f32"), state=True, inputs=hand_case(2, kind), oracle="mpmath")
            for kind in ("bf16", "f16", "f32")
        ),
        small(op, "hand_case_v_first", shape, first, f"the same with states [V,K]: {result} transposed",
              "family1,layout", dtypes=F32, state=True, inputs=swapped, oracle="mpmath"),
    ]  # fmt: skip


def ladders(op: str) -> list[Fixture]:
    """Family 2."""
    heads = LADDER.size
    drawn = {"g": LADDER[:, None], "beta": 0.5}
    mixed = {"g": np.where(np.arange(8) == 0, -5.0, -0.001), "beta": 0.5}
    return [
        small(op, "ladder_t64", Shape(64, H=heads, K=6), FINAL, LADDER_TEXT, "gate,family2", dtypes=BF16_G32,
              state=True, inputs=drawn),
        small(op, "ladder_t129", Shape(129, H=1, HV=heads, K=4), FINAL, LADDER_TEXT, "gate,family2,gva", dtypes=F32,
              state=True, inputs=drawn),
        small(op, "ladder_f16_t40", Shape(40, H=1, HV=heads, K=4, V=3), FINAL, LADDER_TEXT, "gate,family2,dtype",
              dtypes=F16, state=True, inputs=drawn),
        small(op, "mixed_channels", Shape(129, H=1, K=8), FINAL, "channel 0 at -5, the others at -0.001",
              "gate,family2", dtypes=F32, state=True, inputs=mixed),
        small(op, "softplus_edge_t129", Shape(129, H=2, K=8), FUSED_SOFTPLUS | FINAL, "softplus gates of a mean of "
              "5.5 and 5.6 a token, a one-token tail after them", "gate,family2",
              inputs={"A_log": 0.0, "dt_bias": 0.0, "g": np.array([[5.5], [5.625]])}),
    ]  # fmt: skip


def gates(op: str) -> list[Fixture]:
    """The gate's formulas and corners."""
    points = np.resize([-20.0, -4.0, 0.0, 4.0, 20.0], (5, 1, 5))
    slopes = {"A_log": np.array([-2.0, 0.0, 3.0]), "dt_bias": 0.0, "g": points}
    table = Shape(5, H=1, HV=3, K=5, V=2)
    half = {"g": math.log(0.5), "beta": 0.5}
    real = {
        "A_log": np.array([5.3, 2.1]),
        "g": rng.uniform(f"{op}/checkpoint/g", (80, 2, 8), -4.0, 13.28),
        "dt_bias": 0.0,
    }
    infinite = np.where(rng.uniform(f"{op}/minus_inf", (50, 2, 8)) < 0.2, -math.inf, -0.01)
    pads = (np.arange(50) % 5 != 2)[:, None, None]
    return [
        small(op, "gate_table_bound", table, GATE_BOUND | FINAL, "lower_bound·sigmoid at A_log -2, 0, 3 and "
              "-20 … 20; the clamped softplus gives something else", "gate", dtypes=F32, state=True, inputs=slopes),
        small(op, "gate_table_softplus", table, GATE_SOFTPLUS | FINAL, "-exp(A_log)·softplus at the same points: "
              "the tail is not 0 at -20", "gate", dtypes=F32, state=True, inputs=slopes),
        small(op, "natural_log", Shape(4, K=2), FINAL, "log decay ln 1/2: read as log2 it decays by 0.6185",
              "gate,units", dtypes=F32, state=True, inputs=half, oracle="mpmath"),
        small(op, "no_decay", Shape(100, H=2, K=8), STATES, "g = 0: decay exactly 1", "gate", dtypes=F32,
              inputs={"g": 0.0}),
        small(op, "resets", Shape(100, H=2, K=8), FINAL, "30 % of the decays are exp(-1000)", "gate,overflow",
              dtypes=F32, state=True, inputs={"g": resets(f"{op}/resets", (100, 2, 8))}),
        small(op, "minus_inf", Shape(50, H=2, K=8), STATES, "a fifth of the log decays is -inf", "gate,overflow",
              dtypes=F32, state=True, inputs={"g": infinite}),
        small(op, "minus_inf_f16", Shape(20, H=1, K=8), FINAL, "all log decays -inf, in f16", "gate,overflow,dtype",
              dtypes=F16, state=True, inputs={"g": -math.inf}),
        small(op, "checkpoint_gate", Shape(80, H=2, K=8), FUSED_SOFTPLUS | FINAL, "A_log 5.3, |g| up to 2661 a token",
              "gate,overflow", state=True, inputs=real),
        small(op, "pad_rows", Shape(50, H=2, K=8), FINAL, "every fifth row is padding: k = v = beta = 0, g = 0",
              "padding", dtypes=F32, state=True,
              inputs={"k": pads * rng.unit_rows(f"{op}/pad/k", (50, 2, 8)), "v": pads * rng.normal(f"{op}/pad/v",
                      (50, 2, 8)), "g": -0.5 * pads, "beta": 0.7 * pads[..., 0]}),
        small(op, "tiny_keys", Shape(12, H=1, K=8), L2NORM | FINAL, "rows of zeros and of length 1e-3, where the "
              "epsilon of the norm decides", "l2norm", dtypes=F32,
              inputs={name: np.resize([0, 1e-3, 1], 12)[:, None, None] * rng.unit_rows(f"{op}/tiny/{name}", (12, 1, 8))
                      for name in ("q", "k")}),
    ]  # fmt: skip


def keys(op: str) -> list[Fixture]:
    """Family 4: key structures against slow, middle and fast gates."""
    shape = Shape(64, K=16)
    kinds = {
        "near": near_copies(f"{op}/near", (64, 1, 16)),
        "alternating": alternating(f"{op}/alternating", (64, 1, 16)),
    }
    speeds = {"slow": -1e-4, "middle": -0.05, "fast": -3.0}
    axis = {"q": axis_rows(16), "k": axis_rows(16), "v": np.arange(1, 17), "g": -3.07e-5, "beta": 0.9}
    beta2 = {"g": 0.0, "beta": 2.0}
    return [
        small(op, "identical_keys", shape, STATES, "k = q = e1, v = 1..16, g = -3.07e-5, beta 0.9: row 0 of the state "
              "ends at 0.9999966·(1..16)", "family4,collinear", dtypes=F32, inputs=axis),
        small(op, "identical_keys_saturated", shape, FUSED_BOUND | FINAL, "one key, raw gate -12, sigmoid(8)",
              "family4,collinear", inputs={"k": rng.normal(f"{op}/one_key", (1, 1, 16)), "g": -12.0, "A_log": 0.0,
                                           "dt_bias": 0.0, "beta": 8.0}),
        *(
            small(op, f"{kind}_keys_{speed}", shape, FINAL, f"{kind} keys, {speed} gate, beta 1.9", "family4,collinear",
                  dtypes=F32, inputs={"k": key, "g": g, "beta": 1.9})
            for kind, key in kinds.items()
            for speed, g in speeds.items()
        ),
        small(op, "beta2_random_keys", Shape(130, H=1, K=8), FINAL, "beta = 2, g = 0: reflections only", "beta",
              dtypes=F32, inputs=beta2),
        small(op, "beta2_repeated_key", Shape(64, H=1, K=8), FINAL, "beta = 2, one key: the state swings without decay",
              "beta,collinear", dtypes=F32, inputs=beta2 | {"k": axis_rows(8)}),
        small(op, "near_keys_long", Shape(400, H=1, K=8, V=4), FINAL, "1 % noise on one key, seven chunks, beta 0.9",
              "family4,collinear", dtypes=F32,
              inputs={"k": near_copies(f"{op}/near_long", (400, 1, 8)), "g": -3.07e-5, "beta": 0.9}),
    ]  # fmt: skip


def causality(op: str) -> list[Fixture]:
    """Family 6: the first 6 outputs of these three are equal to the bit."""
    edits = {"base": "16 tokens", "edited": "gates from token 6 on changed", "cut": "cut to 7 tokens"}
    return [
        small(op, f"causality_{edit}", Shape(7 if edit == "cut" else 16, K=16), GATE_BOUND, f"causality probe: {why}",
              "causality,family6", inputs=causality_inputs(f"{op}/causality", edit, 16))
        for edit, why in edits.items()
    ]  # fmt: skip


def rounding(op: str) -> list[Fixture]:
    """Family 8: one rounding that piles up in the state."""
    axis = {"q": axis_rows(2), "k": axis_rows(2), "v": 1.0, "g": 0.0, "beta": 0.5}
    decaying = {"g": math.log(0.99992), "beta": 0.0}
    cases = [
        small(op, "sigmoid_half_t1", Shape(1, K=2), SIGMOID | FINAL, "sigmoid(0.5) = 0.62245933, rounded through bf16 "
              "0.62109375", "family8,beta", inputs=axis, oracle="mpmath"),
        small(op, "slow_decay_t4096", Shape(4096, K=2, V=1), FINAL, "decay 0.99992 with beta 0: the state ends at "
              "0.7206 of its start, not at 1", "family8,gate", dtypes=BF16_G32, state=True, inputs=decaying),
    ]  # fmt: skip
    if op == "recurrent_kda":
        changing = axis | {"v": rng.normal(f"{op}/half/v", (4096, 1, 2)), "g": -0.001}
        kinds = Dtypes("bf16", "f32", "bf16")
        cases.append(small(op, "sigmoid_half_t4096", Shape(4096, K=2), SIGMOID | FINAL, "4096 such steps against "
                           "values that change", "family8,beta", dtypes=kinds, inputs=changing))  # fmt: skip
    return cases


def all_cases() -> list[Fixture]:
    builders = (hand, ladders, gates, keys, causality, rounding)
    return [fixture for op in OPS for build in builders for fixture in build(op)]
