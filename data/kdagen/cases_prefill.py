"""Valid cases of the `kda_prefill` contract: K = V = 128, HV = H, bf16."""

from __future__ import annotations

import math

import numpy as np

from kdagen import rng
from kdagen.draw import (
    BF16_G32,
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
from kdagen.shared_inputs import (
    alternating,
    axis_rows,
    causality_inputs,
    hand_case,
    near_copies,
    resets,
)

D = 128


def prefill(name: str, tokens: int, params: Params, description: str, tags: str, **more: object) -> Fixture:
    heads = more.pop("H", 1)
    batch = more.pop("B", 1)
    shape = Shape(tokens, H=heads, B=batch)
    return case(f"prefill_{name}", "kda_prefill", shape, params, description, tags, **more)


def options() -> list[Fixture]:
    """Every argument on and off."""
    sides = np.linspace(-1.0, 1.0, 4)
    return [
        prefill("fused_bound_t64", 64, FUSED_BOUND | FINAL, "one chunk, everything fused, bounded gate", "smoke,gate"),
        prefill("fused_softplus_t65", 65, FUSED_SOFTPLUS | FINAL, "softplus gate, one token after the chunk, "
                "resumed", "gate,tail", dtypes=Dtypes(beta="f32"), state=True),
        prefill("defaults_t1", 1, {}, "no params at all: ready-made inputs, default scale, no final state",
                "smoke,defaults", bare=True),
        prefill("ready_t63", 63, FINAL, "log decays and beta ready-made in f32, unit keys, resumed",
                "ready", dtypes=BF16_G32, state=True),
        prefill("ready_bf16_t17", 17, {}, "log decays and beta ready-made in bf16", "ready,dtype"),
        prefill("g_f32_beta_bf16_t16", 16, {}, "mixed dtypes", "ready,dtype", dtypes=Dtypes(g="f32")),
        prefill("g_bf16_beta_f32_t15", 15, {}, "mixed dtypes", "ready,dtype", dtypes=Dtypes(beta="f32")),
        prefill("l2norm_only_t16", 16, L2NORM, "only the norm is fused", "l2norm"),
        prefill("sigmoid_only_t15", 15, SIGMOID, "only the sigmoid of beta is fused", "beta"),
        prefill("gate_bound_only_t60", 60, {"use_gate_in_kernel": 1, "lower_bound": -5.0}, "bounded gate without the "
                "safe_gate promise", "gate"),
        prefill("gate_bound_deep_t33", 33, GATE_BOUND | {"lower_bound": -7.0}, "a bound below -5 is fine here",
                "gate"),
        prefill("gate_softplus_only_t31", 31, GATE_SOFTPLUS, "softplus gate, the rest ready-made", "gate"),
        prefill("gate_off_ignored_params_t9", 9, {"safe_gate": 1, "lower_bound": -0.5}, "gate off: safe_gate, bound, "
                "a wrong A_log and a wrong dt_bias are ignored", "gate",
                inputs={"A_log": Tensor.of([1.0, 2.0, 3.0], "f16"), "dt_bias": Tensor.of([9.0], "f64")}),
        prefill("scale_one_t12", 12, {"scale": 1.0}, "explicit scale", "scale"),
        prefill("scale_negative_t12", 12, {"scale": -0.37}, "a negative scale is allowed", "scale"),
        prefill("odd_shapes_t8", 8, FUSED_SOFTPLUS, "A_log as [1,1,2,1], dt_bias as [2,128]", "shape", H=2,
                inputs={"A_log": Tensor.of(np.reshape([-0.5, 0.75], (1, 1, 2, 1)), "f32"),
                        "dt_bias": Tensor.of(rng.normal("odd_shapes/dt_bias", (2, D)), "f32")}),
        prefill("state_unused_final_t40", 40, FUSED_BOUND, "initial state, but no final state asked for", "state",
                state=True),
        prefill("batch2_heads2_t33", 33, FUSED_BOUND, "two rows, two heads", "batch", B=2, H=2),
        prefill("head_order_t8", 8, FUSED_BOUND, "v and beta constant per head: a swapped head shows by value",
                "heads", H=4, inputs={"v": np.arange(1, 5).reshape(4, 1), "beta": sides}),
    ]  # fmt: skip


def layouts() -> list[Fixture]:
    """State layouts, chunk states, packed sequences."""
    slow = {"g": -4.9}
    return [
        prefill("states_kv_t66", 66, FUSED_BOUND | STATES, "states [K,V] before each chunk; the last one is not "
                "the final state", "layout,states", state=True),
        prefill("states_vk_t70", 70, FUSED_BOUND | STATES | {"state_v_first": 1}, "states [V,K]", "layout,states",
                state=True),
        prefill("states_only_t65", 65, FUSED_SOFTPLUS | {"return_intermediate_states": 1}, "chunk states without a "
                "final state", "states"),
        prefill("varlen_0_63_128", 128, FINAL, "packed boundary inside a chunk, hard decay", "varlen,family3",
                cu=[0, 63, 128], dtypes=BF16_G32, state=True, inputs=slow),
        prefill("varlen_0_1_2_66_67_i32", 67, FUSED_SOFTPLUS, "one-token "
                "sequences beside a full chunk, int32 bounds", "varlen,family3",
                cu=Tensor.of([0, 1, 2, 66, 67], "i32")),
        prefill("varlen_one_sequence", 20, FUSED_BOUND, "cu_seqlens with one sequence", "varlen", cu=[0, 20]),
    ]  # fmt: skip


def tails() -> list[Fixture]:
    """Family 5: lengths around the chunk; the final state is judged too."""
    return [
        prefill(f"tail_t{tokens}", tokens, FUSED_BOUND | FINAL, "tail handling in output and final state",
                "tail,family5")
        for tokens in (1, 129)
    ]  # fmt: skip


def gates() -> list[Fixture]:
    """Families 2 and the corners of the decay."""
    ladder = np.array([-1.4, -2.8, -5.6, -12.0, -1000.0])
    mixed = np.where(np.arange(D) == 0, -5.0, -0.001)
    some = rng.uniform("prefill_minus_inf/rows", (40, 1, D)) < 0.2
    padded = np.arange(70) % 7 >= 4
    real = {
        "A_log": np.array([5.3]),
        "g": rng.uniform("prefill_checkpoint/g", (70, 1, D), -4.0, 13.28),
        "dt_bias": rng.uniform("prefill_checkpoint/dt_bias", (D,), -0.05, 0.0),
    }
    none_below = {"A_log": np.array([0.0]), "dt_bias": 0.0, "g": np.float64(-12.0), "beta": np.float64(8.0)}
    return [
        prefill("ladder_t64", 64, {}, "one constant log decay a head: -1.4, -2.8, -5.6, -12, -1000",
                "gate,family2", H=5, dtypes=BF16_G32, inputs={"g": ladder[:, None], "beta": 0.5}),
        prefill("mixed_channels_t64", 64, FINAL, "channel 0 at -5, the others at -0.001", "gate,family2",
                dtypes=BF16_G32, state=True, inputs={"g": mixed, "beta": 0.5}),
        prefill("no_decay_t66", 66, FINAL, "g = 0: decay exactly 1", "gate", inputs={"g": 0.0}),
        prefill("resets_t72", 72, FINAL, "30 % of the decays are exp(-1000)", "gate,overflow", state=True,
                dtypes=BF16_G32, inputs={"g": resets("prefill_resets", (1, 72, 1, D))}),
        prefill("minus_inf_t40", 40, FINAL, "a fifth of the log decays is -inf, and token 20 wholly", "gate,overflow",
                state=True, dtypes=BF16_G32,
                inputs={"g": np.where(some | (np.arange(40) == 20)[:, None, None], -math.inf, -0.01)}),
        prefill("minus_inf_bf16_t20", 20, {}, "every log decay is -inf, in bf16: no memory at all",
                "gate,overflow", state=True, inputs={"g": -math.inf}),
        prefill("checkpoint_gate_t70", 70, FUSED_SOFTPLUS | FINAL, "gates as in a real checkpoint: A_log 5.3, |g| up "
                "to 2661 a token", "gate,overflow", state=True, inputs=real),
        prefill("wide_values_t64", 64, FUSED_SOFTPLUS, "v up to 24.8, gates to -316 as measured on a model",
                "gate,range", inputs={"v": rng.uniform("prefill_wide/v", (64, 1, D), -0.28, 24.8),
                                      "A_log": np.array([4.0]),
                                      "g": rng.uniform("prefill_wide/g", (64, 1, D), -9.0, 5.8)}),
        prefill("pad_rows_t70", 70, FINAL, "three of every seven rows are padding (k = v = beta = 0, g = 0)", "padding",
                state=True, inputs=_padded("prefill_pad_rows", padded)),
        prefill("saturated_t64", 64, FUSED_BOUND | FINAL, "one key repeated, q = k, decay about 1, sigmoid(8), v near "
                "what the state holds", "family4,collinear", state=True, inputs=none_below | _repeated_key(64)),
        prefill("zero_and_tiny_keys_t24", 24, FUSED_BOUND, "rows of zeros and of length 1e-3, where the epsilon of the "
                "norm decides", "l2norm", inputs=_tiny_keys(24)),
    ]  # fmt: skip


def _padded(seed: str, padded: np.ndarray) -> dict[str, np.ndarray]:
    tokens = padded.size
    keep = ~padded[:, None, None]
    return {
        "k": rng.unit_rows(f"{seed}/k", (tokens, 1, D)) * keep,
        "v": rng.normal(f"{seed}/v", (tokens, 1, D)) * keep,
        "g": -0.5 * rng.uniform(f"{seed}/g", (tokens, 1, D)) * keep,
        "beta": rng.uniform(f"{seed}/beta", (tokens, 1)) * keep[..., 0],
    }


def _repeated_key(tokens: int) -> dict[str, np.ndarray]:
    """A state near what v writes, as in `identical_keys_t64`."""
    key = rng.normal("prefill_saturated/key", (1, 1, D))
    steady = rng.normal("prefill_saturated/steady", (1, D))
    values = steady + rng.normal("prefill_saturated/v", (tokens, 1, D)) / 4
    return {"q": key, "k": key, "v": values, "initial_state": key[0, 0, :, None] * steady / math.sqrt(D)}


def _tiny_keys(tokens: int) -> dict[str, np.ndarray]:
    length = np.resize([0.0, 1e-3, 1.0], tokens)[:, None, None]
    return {name: length * rng.unit_rows(f"prefill_tiny/{name}", (tokens, 1, D)) for name in ("q", "k")}


def keys() -> list[Fixture]:
    """Key structures against slow decay, beta up to 2, and the hand case."""
    negative = {"allow_neg_eigval": 1}
    slow = {"g": -3.07e-5}
    ramp = np.where(np.arange(D) < 16, np.arange(1, D + 1), 0)
    hand = hand_case(D)
    return [
        prefill("hand_case", 1, FINAL | {"scale": 1.0}, "worked by hand in the first 2 of 128 channels: "
                "o = (6, 11.5), S = [[5.25, 10.5], [0.75, 1]]", "family1,layout", dtypes=BF16_G32,
                inputs=hand, state=True),
        # The state starts near what v writes: one error of a 16-bit T acts on all tokens alike here, and writes from
        # nothing would add it up to 13 % of the state.
        prefill("identical_keys_t64", 64, FINAL, "k = q = e1, v and row 0 of the initial state 1..16, v a quarter more "
                "or less, slow gate, beta 0.9", "family4,collinear", dtypes=BF16_G32, state=True,
                inputs=slow | {"q": axis_rows(D), "k": axis_rows(D), "beta": 0.9,
                               "v": (1 + np.sign(rng.normal("prefill_identical/sign", (64, 1, 1))) / 4) * ramp,
                               "initial_state": np.outer(axis_rows(D), ramp)}),
        prefill("near_identical_keys_t80", 80, FINAL, "keys within 1 % of one another, slow gate, beta 0.9",
                "family4,collinear", dtypes=BF16_G32,
                inputs=slow | {"k": near_copies("prefill_near", (80, 1, D)), "beta": 0.9}),
        # Beta 1.9 is for f32 storage (cases_faults): 16-bit operands alone cause errors of a fifth of o there.
        prefill("alternating_keys_t64", 64, {}, "k = ±e, sign alternating, beta 1.5", "collinear,beta",
                dtypes=BF16_G32, inputs=slow | {"k": alternating("prefill_alternating", (64, 1, D)), "beta": 1.5}),
        prefill("neg_eigval_ready_t70", 70, FINAL | negative, "allow_neg_eigval with ready-made beta in (0, 2): "
                "accepted, and changes nothing", "beta,neg_eigval", dtypes=BF16_G32,
                inputs={"beta": rng.uniform("prefill_neg/beta", (70, 1), 0.0, 2.0)}),
        prefill("neg_eigval_bf16_t70", 70, negative | GATE_BOUND | L2NORM, "the same with gate and norm "
                "fused, beta in bf16 up to exactly 2", "beta,neg_eigval",
                inputs={"beta": np.resize([2.0, 1.5, 0.25, 1.9921875], (70, 1))}),
        prefill("beta2_no_decay_t64", 64, negative, "beta = 2, g = 0: each write is a reflection", "beta,neg_eigval",
                inputs={"beta": 2.0, "g": 0.0}),
        prefill("beta_over_one_no_flag_t20", 20, {}, "beta up to 2 without the flag: the flag is no condition",
                "beta", dtypes=BF16_G32, inputs={"beta": rng.uniform("prefill_over_one", (20, 1), 1.0, 2.0)}),
    ]  # fmt: skip


def causality() -> list[Fixture]:
    """Family 6: the first 6 outputs of these three are equal to the bit."""
    edits = {"base": "16 tokens", "edited": "gates from token 6 on changed", "cut": "cut to 7 tokens"}
    return [
        prefill(f"causality_{edit}", 7 if edit == "cut" else 16, GATE_BOUND, f"causality probe: {why}",
                "causality,family6", inputs=causality_inputs("prefill_causality", edit, D))
        for edit, why in edits.items()
    ]  # fmt: skip


def all_cases() -> list[Fixture]:
    return options() + layouts() + tails() + gates() + keys() + causality()
